// Attention over the cells of the KV cache.
#pragma once

#include "traits.h"

namespace uitweg {

// For a step of attention that `attention_for` can do; null for any other.
ggml::cpu::tensor_traits * attention_for(const ggml_tensor * op);

} // namespace uitweg
