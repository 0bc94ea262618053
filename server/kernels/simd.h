// The vectors of this CPU, for which the library is compiled: 16 lanes where it has AVX-512 with
// VNNI, 8 where it has AVX2. Without either there are no kernels of ours, and llama.cpp's do it
// all.
#pragma once

#include <cstdint>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) &&                      \
    defined(__AVX512DQ__) && defined(__AVX512VNNI__)
#    define UITWEG_LANES 16
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#    define UITWEG_LANES 8
#endif

#ifdef UITWEG_LANES
#    include <immintrin.h>

namespace uitweg {

constexpr int kLanes = UITWEG_LANES;
constexpr int kVectorBytes = kLanes * 4;

#    if UITWEG_LANES == 16

using Floats = __m512;
using Ints = __m512i;

inline Floats zero_floats() { return _mm512_setzero_ps(); }
inline Floats broadcast(float x) { return _mm512_set1_ps(x); }
inline Floats load(const float * p) { return _mm512_loadu_ps(p); }
inline void store(float * p, Floats x) { _mm512_storeu_ps(p, x); }
inline Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats subtract(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
inline Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats divide(Floats a, Floats b) { return _mm512_div_ps(a, b); }
inline Floats maximum(Floats a, Floats b) { return _mm512_max_ps(a, b); }
// a * b + c, rounded once.
inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats nearest(Floats a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Floats times_power_of_two(Floats a, Floats n) { return _mm512_scalef_ps(a, n); }
inline Floats zero_where_less(Floats a, Floats x, Floats limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), a);
}
// `a` in the lanes whose bit is set, `b` in the others.
inline Floats choose(uint32_t lanes, Floats a, Floats b) {
    return _mm512_mask_mov_ps(b, (__mmask16)lanes, a);
}

inline Ints broadcast(int32_t x) { return _mm512_set1_epi32(x); }
inline Ints load_bytes(const void * p) { return _mm512_loadu_si512(p); }
inline Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
inline Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
template <int N> inline Ints bits_up(Ints a) { return _mm512_slli_epi16(a, N); }
template <int N> inline Ints bits_down(Ints a) { return _mm512_srli_epi16(a, N); }
inline Ints maximum(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
inline int32_t largest(Ints a) { return _mm512_reduce_max_epi32(a); }
inline Ints bits_of(Floats a) { return _mm512_castps_si512(a); }
inline Ints to_ints(Floats a) { return _mm512_cvtps_epi32(a); }
inline Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
inline int32_t sum(Ints a) { return _mm512_reduce_add_epi32(a); }
inline void store_as_bytes(int8_t * p, Ints a) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtsepi32_epi8(a));
}
inline Ints unsigned_bytes(const uint8_t * p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
inline Ints signed_bytes(const uint8_t * p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
inline Floats halves(const void * p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
inline Floats brain_halves(const void * p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

// In each lane: sum + the four products of unsigned `weights` and the signed bytes at `x`.
inline Ints dot(Ints sum, Ints weights, const int8_t * x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    return _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(four));
}
// The same for weights of 8 bits, which are kept so that `dot` can take them: 128 too large.
constexpr int kByteOffset = 128;
inline Ints dot_of_bytes(Ints sum, Ints weights, const int8_t * x) { return dot(sum, weights, x); }

#    else

using Floats = __m256;
using Ints = __m256i;

inline Floats zero_floats() { return _mm256_setzero_ps(); }
inline Floats broadcast(float x) { return _mm256_set1_ps(x); }
inline Floats load(const float * p) { return _mm256_loadu_ps(p); }
inline void store(float * p, Floats x) { _mm256_storeu_ps(p, x); }
inline Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
inline Floats subtract(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
inline Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats divide(Floats a, Floats b) { return _mm256_div_ps(a, b); }
inline Floats maximum(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
inline Floats nearest(Floats a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Floats times_power_of_two(Floats a, Floats n) {
    const __m256i power = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(power, 23)));
}
inline Floats zero_where_less(Floats a, Floats x, Floats limit) {
    return _mm256_and_ps(a, _mm256_cmp_ps(x, limit, _CMP_NLT_UQ));
}
inline Floats choose(uint32_t lanes, Floats a, Floats b) {
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(lanes), bit), bit);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(set));
}

inline Ints broadcast(int32_t x) { return _mm256_set1_epi32(x); }
inline Ints load_bytes(const void * p) { return _mm256_loadu_si256((const __m256i *)p); }
inline Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
inline Ints either(Ints a, Ints b) { return _mm256_or_si256(a, b); }
template <int N> inline Ints bits_up(Ints a) { return _mm256_slli_epi16(a, N); }
template <int N> inline Ints bits_down(Ints a) { return _mm256_srli_epi16(a, N); }
inline Ints maximum(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
inline int32_t largest(Ints a) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}
inline Ints bits_of(Floats a) { return _mm256_castps_si256(a); }
inline Ints to_ints(Floats a) { return _mm256_cvtps_epi32(a); }
inline Floats to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
inline int32_t sum(Ints a) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}
inline void store_as_bytes(int8_t * p, Ints a) {
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(words, words));
}
inline Ints unsigned_bytes(const uint8_t * p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
inline Ints signed_bytes(const uint8_t * p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
inline Floats halves(const void * p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
inline Floats brain_halves(const void * p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

// Pairs of products are added in 16 bits on the way: exact for weights of up to 7 bits.
inline Ints dot(Ints sum, Ints weights, const int8_t * x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    const __m256i pairs = _mm256_maddubs_epi16(weights, _mm256_set1_epi32(four));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
// Weights of 8 bits stay signed: their sign goes to the other factor, which is never -128.
constexpr int kByteOffset = 0;
inline Ints dot_of_bytes(Ints sum, Ints weights, const int8_t * x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    const __m256i other = _mm256_sign_epi8(_mm256_set1_epi32(four), weights);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), other);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#    endif

// e to the power of x, for x up to 0; 0 where that is below the smallest normal number.
// Range reduction by ln 2 in two parts and a Taylor series of degree 7: 2 units in the last place.
inline Floats exponential(Floats x) {
    const Floats n = nearest(multiply(x, broadcast(1.44269504f)));
    Floats r = multiply_add(n, broadcast(-0.693359375f), x);
    r = multiply_add(n, broadcast(2.12194440e-4f), r);
    Floats y = broadcast(1.0f / 5040);
    y = multiply_add(y, r, broadcast(1.0f / 720));
    y = multiply_add(y, r, broadcast(1.0f / 120));
    y = multiply_add(y, r, broadcast(1.0f / 24));
    y = multiply_add(y, r, broadcast(1.0f / 6));
    y = multiply_add(y, r, broadcast(0.5f));
    y = multiply_add(y, r, broadcast(1.0f));
    y = multiply_add(y, r, broadcast(1.0f));
    return zero_where_less(times_power_of_two(y, n), x, broadcast(-87.0f));
}

} // namespace uitweg

#endif
