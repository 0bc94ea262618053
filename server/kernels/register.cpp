// How llama.cpp comes to use these kernels: it asks each kind of extra buffer which operations it
// does. Weights that are multiplied go into a buffer of ours, in panels; attention needs none.
//
// Compiled into llama.cpp's CPU library (kernels.cmake), where `ggml-cpu.cpp` asks for this buffer
// type in place of llama.cpp's own repacked one; on a CPU without kernels here it gets that one.

#include "attention.h"
#include "ggml-cpu.h"
#include "matmul.h"
#include "repack.h"
#include "simd.h"

#ifdef UITWEG_LANES

namespace uitweg {
namespace {

ggml_backend_buffer_type_t buffer_type();

Kernel * kernel_of(const ggml_tensor * matrix) {
    return matrix->ne[2] == 1 && matrix->ne[3] == 1 ? kernel_for(matrix->type) : nullptr;
}

bool is_ours(const ggml_tensor * tensor) {
    return tensor->buffer && tensor->buffer->buft == buffer_type();
}

ggml_status init_tensor(ggml_backend_buffer_t, ggml_tensor * tensor) {
    tensor->extra = kernel_of(tensor);
    return GGML_STATUS_SUCCESS;
}

void set_tensor(ggml_backend_buffer_t, ggml_tensor * tensor, const void * data, size_t offset,
                size_t size) {
    GGML_ASSERT(offset == 0 && size == ggml_nbytes(tensor));
    const auto * kernel = (const Kernel *)tensor->extra;
    kernel->pack(tensor->data, data, tensor->ne[0], tensor->ne[1]);
}

const char * name(ggml_backend_buffer_type_t) { return "CPU_UITWEG"; }

size_t alignment(ggml_backend_buffer_type_t) { return 64; }

size_t alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * tensor) {
    const Kernel * kernel = kernel_of(tensor);
    return kernel ? kernel->bytes(tensor->ne[0], tensor->ne[1]) : ggml_nbytes(tensor);
}

ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t size) {
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    if (buffer) {
        buffer->buft = type;
        buffer->iface.init_tensor = init_tensor;
        buffer->iface.set_tensor = set_tensor;
        buffer->iface.get_tensor = nullptr;
        buffer->iface.cpy_tensor = nullptr;
    }
    return buffer;
}

bool can_multiply(const ggml_tensor * op) {
    const ggml_tensor *matrix = op->src[0], *x = op->src[1];
    // A part of a matrix does not lie in one piece here.
    return kernel_of(matrix) && !matrix->view_src && x->type == GGML_TYPE_F32 &&
           x->nb[0] == sizeof(float);
}

class Extra : public ggml::cpu::extra_buffer_type {
  public:
    bool supports_op(ggml_backend_dev_t, const ggml_tensor * op) override {
        const ggml_tensor * x = op->src[1];
        return op->op == GGML_OP_MUL_MAT && is_ours(op->src[0]) && can_multiply(op) &&
               (!x->buffer || ggml_backend_buft_is_host(x->buffer->buft));
    }

    ggml::cpu::tensor_traits * get_tensor_traits(const ggml_tensor * op) override {
        if (op->op == GGML_OP_MUL_MAT && is_ours(op->src[0])) {
            GGML_ASSERT(can_multiply(op));
            return (Kernel *)op->src[0]->extra;
        }
        return op->op == GGML_OP_FLASH_ATTN_EXT ? attention_for(op) : nullptr;
    }
};

ggml_backend_buffer_type_t buffer_type() {
    static ggml_backend_buffer_type type = {
        {name, alloc_buffer, alignment, nullptr, alloc_size, nullptr},
        ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
        new Extra(),
    };
    return &type;
}

} // namespace
} // namespace uitweg

ggml_backend_buffer_type_t uitweg_buffer_type() { return uitweg::buffer_type(); }

// What the engine asks, to know which kernels it has: null where there are none, or where another
// kind of buffer would take the weights first.
extern "C" {
GGML_BACKEND_API const char * uitweg_kernels();
const char * uitweg_kernels() {
    const auto & types = ggml_backend_cpu_get_extra_buffer_types();
    if (types.empty() || types.front() != uitweg::buffer_type()) {
        return nullptr;
    }
    return UITWEG_LANES == 16 ? "16 lanes " UITWEG_DIGEST : "8 lanes " UITWEG_DIGEST;
}
}

#else

ggml_backend_buffer_type_t uitweg_buffer_type() { return ggml_backend_cpu_repack_buffer_type(); }

extern "C" {
GGML_BACKEND_API const char * uitweg_kernels();
const char * uitweg_kernels() { return nullptr; }
}

#endif
