// How weights of each GGUF type lie in memory here, and how a block of them becomes bytes again.
//
// A panel is as many rows of a weight matrix as a vector has lanes, each in a lane of its own, so
// that a product needs no sums across lanes. A block is 32 columns of a panel: eight groups of
// four, since four products are added in one instruction. First come the scales of all blocks of
// the panel, then their weights. No value is rounded on the way: the weights are the file's.
#pragma once

#include "simd.h"

#ifdef UITWEG_LANES

#    include <cstring>

#    define GGML_COMMON_DECL_C
#    include "ggml-common.h"

namespace uitweg {

constexpr int kGroups = 8;
constexpr uint32_t kNibbles = 0x0f0f0f0f;

// What a kernel has to do with the sums of a block.
enum class Scaling {
    kPlain,     // one scale
    kShifted,   // one scale, and a number that is added to every weight
    kTwoHalves, // one scale for the first 16 columns, another for the others
};

struct Scales {
    Floats scale;
    Floats other; // the shift, or the scale of the second half
};

inline uint32_t four_bytes(const uint8_t * p) {
    uint32_t four;
    std::memcpy(&four, p, 4);
    return four;
}

inline void put(uint8_t * vector, int lane, uint32_t four) {
    std::memcpy(vector + 4 * lane, &four, 4);
}

// The low four bits of eight groups: groups 0 to 3 below, 4 to 7 above.
inline void pack_nibbles(uint8_t * vectors, int lane, const uint32_t groups[kGroups]) {
    for (int j = 0; j < 4; ++j) {
        const uint32_t four = (groups[j] & kNibbles) | (groups[j + 4] & kNibbles) << 4;
        put(vectors + j * kVectorBytes, lane, four);
    }
}

inline void unpack_nibbles(const uint8_t * vectors, Ints weights[kGroups]) {
    const Ints low = broadcast((int32_t)kNibbles);
    for (int j = 0; j < 4; ++j) {
        const Ints pair = load_bytes(vectors + j * kVectorBytes);
        weights[j] = both(pair, low);
        weights[j + 4] = both(bits_down<4>(pair), low);
    }
}

// The sixteen nibbles of Q4_0, Q4_1, Q5_0: columns 0 to 15 below, 16 to 31 above.
inline void groups_of_nibbles(const uint8_t * nibbles, uint32_t groups[kGroups]) {
    for (int j = 0; j < 4; ++j) {
        groups[j] = four_bytes(nibbles + 4 * j) & kNibbles;
        groups[j + 4] = four_bytes(nibbles + 4 * j) >> 4 & kNibbles;
    }
}

// Each format says:
//   Source, kColumns       the file's block, and of how many columns it is
//   kScaling, kOffset      what is done with sums; what is subtracted from every unpacked weight
//   head_bytes(columns)    bytes of a panel's scales
//   kWeightBytes           bytes of a panel's weights for 32 columns
//   pack(...)              one source block of one lane into the panel
//   scales, unpack         of block number `block`

struct Q4_0 {
    using Source = block_q4_0;
    static constexpr int kColumns = 32;
    static constexpr Scaling kScaling = Scaling::kPlain;
    static constexpr int kOffset = 8;
    static constexpr size_t kWeightBytes = 4 * kVectorBytes;
    static constexpr bool kWholeBytes = false;

    static size_t head_bytes(int64_t columns) { return columns / 32 * kLanes * 2; }

    static void pack(const Source & source, uint8_t * head, uint8_t * weights, int block, int lane,
                     int64_t) {
        std::memcpy(head + (block * kLanes + lane) * 2, &source.d, 2);
        uint32_t groups[kGroups];
        groups_of_nibbles(source.qs, groups);
        pack_nibbles(weights + block * kWeightBytes, lane, groups);
    }
    static Scales scales(const uint8_t * head, int64_t, int block) {
        return {halves(head + block * kLanes * 2), zero_floats()};
    }
    static void unpack(const uint8_t * weights, Ints out[kGroups]) { unpack_nibbles(weights, out); }
};

struct Q4_1 {
    using Source = block_q4_1;
    static constexpr int kColumns = 32;
    static constexpr Scaling kScaling = Scaling::kShifted;
    static constexpr int kOffset = 0;
    static constexpr size_t kWeightBytes = 4 * kVectorBytes;
    static constexpr bool kWholeBytes = false;

    static size_t head_bytes(int64_t columns) { return columns / 32 * kLanes * 4; }

    static void pack(const Source & source, uint8_t * head, uint8_t * weights, int block, int lane,
                     int64_t) {
        std::memcpy(head + (2 * block * kLanes + lane) * 2, &source.d, 2);
        std::memcpy(head + ((2 * block + 1) * kLanes + lane) * 2, &source.m, 2);
        uint32_t groups[kGroups];
        groups_of_nibbles(source.qs, groups);
        pack_nibbles(weights + block * kWeightBytes, lane, groups);
    }
    static Scales scales(const uint8_t * head, int64_t, int block) {
        head += block * kLanes * 4;
        return {halves(head), halves(head + kLanes * 2)};
    }
    static void unpack(const uint8_t * weights, Ints out[kGroups]) { unpack_nibbles(weights, out); }
};

struct Q5_0 {
    using Source = block_q5_0;
    static constexpr int kColumns = 32;
    static constexpr Scaling kScaling = Scaling::kPlain;
    static constexpr int kOffset = 16;
    static constexpr size_t kWeightBytes = 5 * kVectorBytes;
    static constexpr bool kWholeBytes = false;

    static size_t head_bytes(int64_t columns) { return columns / 32 * kLanes * 2; }

    // The fifth bit of the four bytes of group g is bit g of the four bytes of the last vector.
    static void pack(const Source & source, uint8_t * head, uint8_t * weights, int block, int lane,
                     int64_t) {
        std::memcpy(head + (block * kLanes + lane) * 2, &source.d, 2);
        uint32_t groups[kGroups];
        groups_of_nibbles(source.qs, groups);
        const uint32_t bits = four_bytes(source.qh);
        uint32_t fifth = 0;
        for (int g = 0; g < kGroups; ++g) {
            // Four bits side by side into the lowest bit of four bytes.
            const uint32_t spread = (bits >> 4 * g & 0xf) * 0x00204081u & 0x01010101u;
            fifth |= spread << g;
        }
        weights += block * kWeightBytes;
        pack_nibbles(weights, lane, groups);
        put(weights + 4 * kVectorBytes, lane, fifth);
    }
    static Scales scales(const uint8_t * head, int64_t, int block) {
        return {halves(head + block * kLanes * 2), zero_floats()};
    }
    static void unpack(const uint8_t * weights, Ints out[kGroups]) {
        unpack_nibbles(weights, out);
        const Ints fifth = load_bytes(weights + 4 * kVectorBytes);
        const Ints bit = broadcast(0x10101010);
        out[0] = either(out[0], both(bits_up<4>(fifth), bit));
        out[1] = either(out[1], both(bits_up<3>(fifth), bit));
        out[2] = either(out[2], both(bits_up<2>(fifth), bit));
        out[3] = either(out[3], both(bits_up<1>(fifth), bit));
        out[4] = either(out[4], both(fifth, bit));
        out[5] = either(out[5], both(bits_down<1>(fifth), bit));
        out[6] = either(out[6], both(bits_down<2>(fifth), bit));
        out[7] = either(out[7], both(bits_down<3>(fifth), bit));
    }
};

struct Q8_0 {
    using Source = block_q8_0;
    static constexpr int kColumns = 32;
    static constexpr Scaling kScaling = Scaling::kPlain;
    static constexpr int kOffset = kByteOffset;
    static constexpr size_t kWeightBytes = 8 * kVectorBytes;
    static constexpr bool kWholeBytes = true;

    static size_t head_bytes(int64_t columns) { return columns / 32 * kLanes * 2; }

    static void pack(const Source & source, uint8_t * head, uint8_t * weights, int block, int lane,
                     int64_t) {
        constexpr uint32_t offset = kByteOffset ? 0x80808080u : 0;
        std::memcpy(head + (block * kLanes + lane) * 2, &source.d, 2);
        weights += block * kWeightBytes;
        for (int g = 0; g < kGroups; ++g) {
            const uint32_t four = four_bytes((const uint8_t *)source.qs + 4 * g);
            put(weights + g * kVectorBytes, lane, four ^ offset);
        }
    }
    static Scales scales(const uint8_t * head, int64_t, int block) {
        return {halves(head + block * kLanes * 2), zero_floats()};
    }
    static void unpack(const uint8_t * weights, Ints out[kGroups]) {
        for (int g = 0; g < kGroups; ++g) {
            out[g] = load_bytes(weights + g * kVectorBytes);
        }
    }
};

// Scales and shifts of 6 bits for each 32 columns, times two floats for 256. Here each has a byte.
struct Q4_K {
    using Source = block_q4_K;
    static constexpr int kColumns = 256;
    static constexpr Scaling kScaling = Scaling::kShifted;
    static constexpr int kOffset = 0;
    static constexpr size_t kWeightBytes = 4 * kVectorBytes;
    static constexpr bool kWholeBytes = false;

    static size_t head_bytes(int64_t columns) {
        return columns / 256 * kLanes * 4 + columns / 32 * kLanes * 2;
    }

    static void pack(const Source & source, uint8_t * head, uint8_t * weights, int block, int lane,
                     int64_t columns) {
        std::memcpy(head + (2 * block * kLanes + lane) * 2, &source.d, 2);
        std::memcpy(head + ((2 * block + 1) * kLanes + lane) * 2, &source.dmin, 2);
        uint8_t * small = head + columns / 256 * kLanes * 4;
        for (int part = 0; part < 8; ++part) {
            uint8_t scale, shift;
            six_bits(source.scales, part, scale, shift);
            small[(2 * (8 * block + part)) * kLanes + lane] = scale;
            small[(2 * (8 * block + part) + 1) * kLanes + lane] = shift;
            uint32_t groups[kGroups];
            for (int g = 0; g < kGroups; ++g) {
                const uint32_t pair = four_bytes(source.qs + part / 2 * 32 + 4 * g);
                groups[g] = pair >> (part % 2 * 4) & kNibbles;
            }
            pack_nibbles(weights + (8 * block + part) * kWeightBytes, lane, groups);
        }
    }
    // Of eight pairs in 12 bytes: four bytes each of scales and of shifts hold six bits of the
    // first four and, above them, two of the last four, whose other bits are in the last bytes.
    static void six_bits(const uint8_t * p, int part, uint8_t & scale, uint8_t & shift) {
        if (part < 4) {
            scale = p[part] & 63;
            shift = p[part + 4] & 63;
        } else {
            scale = (p[part + 4] & 15) | (p[part - 4] >> 6) << 4;
            shift = (p[part + 4] >> 4) | (p[part] >> 6) << 4;
        }
    }
    static Scales scales(const uint8_t * head, int64_t columns, int block) {
        const uint8_t * large = head + block / 8 * kLanes * 4;
        const uint8_t * small = head + columns / 256 * kLanes * 4 + block * kLanes * 2;
        const Floats scale = multiply(halves(large), to_floats(unsigned_bytes(small)));
        const Floats least = halves(large + kLanes * 2);
        const Floats shift = multiply(least, to_floats(unsigned_bytes(small + kLanes)));
        return {scale, subtract(zero_floats(), shift)};
    }
    static void unpack(const uint8_t * weights, Ints out[kGroups]) { unpack_nibbles(weights, out); }
};

// A scale of 8 bits for each 16 columns, times a float for 256.
struct Q6_K {
    using Source = block_q6_K;
    static constexpr int kColumns = 256;
    static constexpr Scaling kScaling = Scaling::kTwoHalves;
    static constexpr int kOffset = 32;
    static constexpr size_t kWeightBytes = 6 * kVectorBytes;
    static constexpr bool kWholeBytes = false;

    static size_t head_bytes(int64_t columns) {
        return columns / 256 * kLanes * 2 + columns / 16 * kLanes;
    }

    // The two high bits of group g are bits 2g of the fifth vector, or 2(g - 4) of the sixth.
    static void pack(const Source & source, uint8_t * head, uint8_t * weights, int block, int lane,
                     int64_t columns) {
        std::memcpy(head + (block * kLanes + lane) * 2, &source.d, 2);
        uint8_t * small = head + columns / 256 * kLanes * 2;
        for (int part = 0; part < 8; ++part) {
            for (int half = 0; half < 2; ++half) {
                const int8_t scale = source.scales[2 * part + half];
                small[(2 * (8 * block + part) + half) * kLanes + lane] = (uint8_t)scale;
            }
            // Each half of the source holds 128 columns: 64 bytes of nibbles, 32 of high bits.
            const int quarter = part % 4;
            const uint8_t * low = source.ql + part / 4 * 64 + quarter % 2 * 32;
            const uint8_t * high = source.qh + part / 4 * 32;
            uint32_t groups[kGroups];
            uint32_t bits[2] = {0, 0};
            for (int g = 0; g < kGroups; ++g) {
                groups[g] = four_bytes(low + 4 * g) >> (quarter / 2 * 4) & kNibbles;
                const uint32_t two = four_bytes(high + 4 * g) >> (2 * quarter) & 0x03030303u;
                bits[g / 4] |= two << (2 * (g % 4));
            }
            uint8_t * out = weights + (8 * block + part) * kWeightBytes;
            pack_nibbles(out, lane, groups);
            put(out + 4 * kVectorBytes, lane, bits[0]);
            put(out + 5 * kVectorBytes, lane, bits[1]);
        }
    }
    static Scales scales(const uint8_t * head, int64_t columns, int block) {
        const Floats large = halves(head + block / 8 * kLanes * 2);
        const uint8_t * small = head + columns / 256 * kLanes * 2 + block * kLanes * 2;
        return {multiply(large, to_floats(signed_bytes(small))),
                multiply(large, to_floats(signed_bytes(small + kLanes)))};
    }
    static void unpack(const uint8_t * weights, Ints out[kGroups]) {
        unpack_nibbles(weights, out);
        const Ints bits = broadcast(0x30303030);
        for (int half = 0; half < 2; ++half) {
            const Ints high = load_bytes(weights + (4 + half) * kVectorBytes);
            Ints * four = out + 4 * half;
            four[0] = either(four[0], both(bits_up<4>(high), bits));
            four[1] = either(four[1], both(bits_up<2>(high), bits));
            four[2] = either(four[2], both(high, bits));
            four[3] = either(four[3], both(bits_down<2>(high), bits));
        }
    }
};

} // namespace uitweg

#endif
