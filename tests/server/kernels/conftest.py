"""Single operations of llama.cpp's library, with weights as its kernels or ours keep them."""

import ctypes
from ctypes import c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p

import numpy as np
import pytest

from server.engine.native import native

F32, F16, I32, BF16 = 0, 1, 26, 30
TYPES = {"Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14}

_SIGNATURES = {
    "ggml_init": (c_void_p, []),
    "ggml_free": (None, [c_void_p]),
    "ggml_new_tensor_4d": (c_void_p, [c_void_p, c_int, c_int64, c_int64, c_int64, c_int64]),
    "ggml_mul_mat": (c_void_p, [c_void_p] * 3),
    "ggml_get_rows": (c_void_p, [c_void_p] * 3),
    "ggml_flash_attn_ext": (c_void_p, [c_void_p] * 5 + [c_float] * 3),
    "ggml_new_graph": (c_void_p, [c_void_p]),
    "ggml_build_forward_expand": (None, [c_void_p] * 2),
    "ggml_nbytes": (c_size_t, [c_void_p]),
    "ggml_row_size": (c_size_t, [c_int, c_int64]),
    "ggml_quantize_chunk": (
        c_size_t,
        [c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p],
    ),
    "ggml_backend_cpu_init": (c_void_p, []),
    "ggml_backend_cpu_set_n_threads": (None, [c_void_p, c_int]),
    "ggml_backend_cpu_buffer_type": (c_void_p, []),
    "ggml_backend_cpu_reg": (c_void_p, []),
    "ggml_backend_reg_get_proc_address": (c_void_p, [c_void_p, c_char_p]),
    "ggml_backend_reg_dev_get": (c_void_p, [c_void_p, c_size_t]),
    "ggml_backend_buft_name": (c_char_p, [c_void_p]),
    "ggml_backend_dev_supports_op": (c_bool, [c_void_p, c_void_p]),
    "ggml_backend_alloc_ctx_tensors_from_buft": (c_void_p, [c_void_p, c_void_p]),
    "ggml_backend_tensor_set": (None, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_tensor_get": (None, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_graph_compute": (c_int, [c_void_p, c_void_p]),
    "ggml_backend_buffer_free": (None, [c_void_p]),
    "ggml_backend_free": (None, [c_void_p]),
}


class _InitParams(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("memory", c_void_p), ("no_alloc", c_bool)]


class Ggml:
    """The library's functions by their names, without their prefix `ggml_`."""

    def __init__(self):
        self.kernels = native().kernels
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(native().lib._lib, name)
            function.restype = result
            function.argtypes = arguments if name != "ggml_init" else [_InitParams]
            setattr(self, name.removeprefix("ggml_"), function)
        self.plain_buffer = self.backend_cpu_buffer_type()

    @property
    def our_buffer(self):
        """The kind of buffer that the library offers for weights."""
        registry = self.backend_cpu_reg()
        address = self.backend_reg_get_proc_address(registry, b"ggml_backend_dev_get_extra_bufts")
        offered = ctypes.CFUNCTYPE(ctypes.POINTER(c_void_p), c_void_p)(address)
        return offered(self.backend_reg_dev_get(registry, 0))[0]

    def quantized(self, kind, weights):
        """Bytes of a float matrix in a format."""
        rows, columns = weights.shape
        out = np.empty(self.row_size(TYPES[kind], columns) * rows, np.uint8)
        weights = np.ascontiguousarray(weights, np.float32)
        self.quantize_chunk(
            TYPES[kind], weights.ctypes.data, out.ctypes.data, 0, rows, columns, None
        )
        return out

    def product(self, kind, matrix, shape, x, *, ours, threads=2):
        """`x` times a quantized matrix of `shape`, (outputs, columns)."""

        def build(context, tensors):
            return self.mul_mat(context, tensors[0], tensors[1])

        buffer = self.our_buffer if ours else self.plain_buffer
        first = (TYPES[kind], (shape[1], shape[0], 1, 1), matrix, buffer)
        others = [(F32, (*reversed(x.shape), *[1] * (4 - x.ndim)), x, self.plain_buffer)]
        return self._compute(build, [first, *others], (*x.shape[:-1], shape[0]), threads)

    def floats(self, kind, matrix, shape):
        """What a quantized matrix stands for."""

        def build(context, tensors):
            return self.get_rows(context, tensors[0], tensors[1])

        rows = np.arange(shape[0], dtype=np.int32)
        inputs = [
            (TYPES[kind], (shape[1], shape[0], 1, 1), matrix, self.plain_buffer),
            (I32, (shape[0], 1, 1, 1), rows, self.plain_buffer),
        ]
        return self._compute(build, inputs, shape, 1)

    def attention(self, q, k, v, visible, *, scale, threads=2):
        """Attention of `q` (rows, heads, size) over `k` and `v` (cells, key heads, size).

        `k` is of float16, `v` of uint16 that are the upper halves of floats. `visible`: a bool for
        each row and cell.
        """
        rows, heads, size = q.shape
        cells, key_heads, _ = k.shape
        mask = np.where(visible, 0, -np.inf).astype(np.float16)

        def build(context, tensors):
            return self.flash_attn_ext(context, *tensors, scale, 0.0, 0.0)

        inputs = [
            (F32, (size, rows, heads, 1), q.transpose(1, 0, 2), self.plain_buffer),
            (F16, (size, cells, key_heads, 1), k.transpose(1, 0, 2), self.plain_buffer),
            (BF16, (size, cells, key_heads, 1), v.transpose(1, 0, 2), self.plain_buffer),
            (F16, (cells, rows, 1, 1), mask, self.plain_buffer),
        ]
        return self._compute(build, inputs, (rows, heads, size), threads)

    def _compute(self, build, inputs, shape, threads):
        """One operation over tensors, each given as type, sizes, data and kind of buffer."""
        context = self.init(_InitParams(1 << 20, None, True))
        contexts, buffers, tensors = [context], [], []
        for kind, sizes, data, buffer in inputs:
            own = self.init(_InitParams(1 << 16, None, True))
            tensor = self.new_tensor_4d(own, kind, *sizes)
            buffers.append(self.backend_alloc_ctx_tensors_from_buft(own, buffer))
            data = np.ascontiguousarray(data)
            assert data.nbytes == self.nbytes(tensor)
            self.backend_tensor_set(tensor, data.ctypes.data, 0, data.nbytes)
            tensors.append(tensor)
            contexts.append(own)
        result = build(context, tensors)
        graph = self.new_graph(context)
        self.build_forward_expand(graph, result)
        buffers.append(self.backend_alloc_ctx_tensors_from_buft(context, self.plain_buffer))
        backend = self.backend_cpu_init()
        self.backend_cpu_set_n_threads(backend, threads)
        assert self.backend_graph_compute(backend, graph) == 0
        out = np.empty(shape, np.float32)
        assert out.nbytes == self.nbytes(result)
        self.backend_tensor_get(result, out.ctypes.data, 0, out.nbytes)
        self.backend_free(backend)
        for buffer in buffers:
            self.backend_buffer_free(buffer)
        for made in contexts:
            self.free(made)
        return out


@pytest.fixture(scope="session")
def ggml():
    """The library with our kernels; without them there is nothing to test here."""
    library = Ggml()
    if library.kernels is None:
        pytest.skip("this CPU, or the library that is installed, has no kernels of ours")
    return library
