// Weights times rows: what nearly all of the time of a step goes to.
#pragma once

#include "traits.h"

namespace uitweg {

// What there is for a type of weights; null where llama.cpp's own kernels have to do.
struct Kernel : ggml::cpu::tensor_traits {
    // Bytes that a matrix of so many columns and rows takes in panels.
    virtual size_t bytes(int64_t columns, int64_t rows) const = 0;
    // Put the matrix of a file into panels.
    virtual void pack(void * panels, const void * source, int64_t columns, int64_t rows) const = 0;
};

Kernel * kernel_for(enum ggml_type type);

} // namespace uitweg
