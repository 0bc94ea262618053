// The other factor of a product with weights: rows of floats, rounded to bytes, 32 at a time.
//
// Rows are put together in tiles of up to `kMostRows`, so that a kernel finds what it needs of all
// rows of a tile next to each other. What is kept of a row does not depend on the others.
#pragma once

#include "simd.h"

#ifdef UITWEG_LANES

#    include <cmath>
#    include <cstddef>
#    include <cstring>

namespace uitweg {

constexpr int kBlock = 32;
constexpr int32_t kInfinityBits = 0x7f800000;
constexpr int kMostRows = kLanes == 16 ? 12 : 4;

// What a tile of R rows keeps of 32 values of each.
template <int R> struct RowBlock {
    int8_t values[R][kBlock];
    float scale[R];           // a value times its scale is the float that it stands for
    float scaled_sum[R];      // of the values, times the scale
    int32_t start[R];         // what undoes the offset of the weights: minus it, times the sum
    int32_t half_start[R][2]; // of the first 16 and of the others
};

constexpr size_t kRowBlockBytes = sizeof(RowBlock<1>);

// Bytes that `rows` rows of `columns` floats take, however they are put into tiles.
inline size_t rows_bytes(int64_t rows, int64_t columns) {
    return (size_t)rows * (columns / kBlock) * kRowBlockBytes;
}

// Rounds one row of `columns` floats into place `row` of a tile of R, to be multiplied with weights
// that are `offset` too large.
template <int R>
void round_row(RowBlock<R> * tile, int row, const float * x, int64_t columns, int offset) {
    constexpr int parts = kBlock / kLanes;
    for (int64_t at = 0; at < columns; at += kBlock, ++tile) {
        Floats part[parts];
        Ints most = broadcast(0);
        for (int i = 0; i < parts; ++i) {
            part[i] = load(x + at + i * kLanes);
            // Without their sign, floats are ordered as the integers that their bits are; and what
            // is not a number comes after all numbers, so that it is not lost here.
            most = maximum(most, both(bits_of(part[i]), broadcast(0x7fffffff)));
        }
        const int32_t bits = largest(most);
        float peak;
        std::memcpy(&peak, &bits, sizeof(peak));
        const bool known = bits < kInfinityBits;
        const Floats factor = broadcast(known && peak > 1e-30f ? 127.0f / peak : 0.0f);
        int32_t half[2] = {0, 0};
        for (int i = 0; i < parts; ++i) {
            const Ints rounded = known ? to_ints(multiply(part[i], factor)) : broadcast(0);
            store_as_bytes(tile->values[row] + i * kLanes, rounded);
            half[2 * i / parts] += sum(rounded);
        }
        tile->scale[row] = known ? peak / 127.0f : NAN;
        tile->scaled_sum[row] = tile->scale[row] * (float)(half[0] + half[1]);
        tile->start[row] = -offset * (half[0] + half[1]);
        tile->half_start[row][0] = -offset * half[0];
        tile->half_start[row][1] = -offset * half[1];
    }
}

} // namespace uitweg

#endif
