// One sum after another, in the same order for every row however many there are: so a row's
// results do not depend on its company, to the last bit.

#include "matmul.h"

#include "formats.h"
#include "rows.h"

#ifdef UITWEG_LANES

#    include <algorithm>

namespace uitweg {
namespace {

constexpr int kChunksPerThread = 8;
// Bytes of weights that are asked for ahead of their use. Memory answers late, and a CPU that only
// looks a few blocks ahead waits: without it a step of one row took 1.4 times as long here.
constexpr int kAhead = 4096;

// The results of one panel for a tile of R rows: `out` is the first row's, `stride` floats apart.
template <class Format, int R>
void panel_times_tile(const uint8_t * panel, const RowBlock<R> * tile, int64_t columns, float * out,
                      int64_t stride, int lanes) {
    const int blocks = (int)(columns / kBlock);
    const uint8_t * weights = panel + Format::head_bytes(columns);
    Floats result[R];
    for (int r = 0; r < R; ++r) {
        result[r] = zero_floats();
    }
    for (int block = 0; block < blocks; ++block, ++tile, weights += Format::kWeightBytes) {
        for (size_t line = 0; line < Format::kWeightBytes; line += 64) {
            __builtin_prefetch(weights + kAhead + line);
        }
        Ints group[kGroups];
        Format::unpack(weights, group);
        const Scales scales = Format::scales(panel, columns, block);
        const auto times = [](Ints sum, Ints four, const int8_t * x) {
            return Format::kWholeBytes ? dot_of_bytes(sum, four, x) : dot(sum, four, x);
        };
        for (int r = 0; r < R; ++r) {
            const int8_t * x = tile->values[r];
            const Floats scale = multiply(scales.scale, broadcast(tile->scale[r]));
            if constexpr (Format::kScaling == Scaling::kTwoHalves) {
                Ints sum[2];
                for (int half = 0; half < 2; ++half) {
                    sum[half] = broadcast(tile->half_start[r][half]);
                    for (int g = 4 * half; g < 4 * half + 4; ++g) {
                        sum[half] = times(sum[half], group[g], x + 4 * g);
                    }
                }
                const Floats other = multiply(scales.other, broadcast(tile->scale[r]));
                result[r] = multiply_add(to_floats(sum[0]), scale, result[r]);
                result[r] = multiply_add(to_floats(sum[1]), other, result[r]);
            } else {
                Ints sum = broadcast(tile->start[r]);
                for (int g = 0; g < kGroups; ++g) {
                    sum = times(sum, group[g], x + 4 * g);
                }
                result[r] = multiply_add(to_floats(sum), scale, result[r]);
                if constexpr (Format::kScaling == Scaling::kShifted) {
                    result[r] =
                        multiply_add(scales.other, broadcast(tile->scaled_sum[r]), result[r]);
                }
            }
        }
    }
    for (int r = 0; r < R; ++r) {
        if (lanes == kLanes) {
            store(out + r * stride, result[r]);
        } else {
            float all[kLanes];
            store(all, result[r]);
            std::copy(all, all + lanes, out + r * stride);
        }
    }
}

// Calls `work` with the number of rows as a constant.
template <int R = kMostRows, class Work> void with_rows(int rows, Work && work) {
    if (rows == R) {
        work(std::integral_constant<int, R>());
    } else if constexpr (R > 1) {
        with_rows<R - 1>(rows, work);
    }
}

template <class Format> class KernelOf : public Kernel {
  public:
    size_t bytes(int64_t columns, int64_t rows) const override {
        return (size_t)((rows + kLanes - 1) / kLanes) * panel_bytes(columns);
    }

    void pack(void * panels, const void * source, int64_t columns, int64_t rows) const override {
        const int blocks = (int)(columns / Format::kColumns);
        const auto * from = (const typename Format::Source *)source;
        std::memset(panels, 0, bytes(columns, rows));
        for (int64_t row = 0; row < rows; ++row) {
            uint8_t * panel = (uint8_t *)panels + row / kLanes * panel_bytes(columns);
            uint8_t * weights = panel + Format::head_bytes(columns);
            for (int block = 0; block < blocks; ++block, ++from) {
                Format::pack(*from, panel, weights, block, (int)(row % kLanes), columns);
            }
        }
    }

    bool work_size(int, const ggml_tensor * op, size_t & size) override {
        size = rows_bytes(ggml_nrows(op->src[1]), op->src[1]->ne[0]);
        return true;
    }

    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        const ggml_tensor * matrix = op->src[0];
        const int64_t columns = matrix->ne[0], outputs = matrix->ne[1];
        const int64_t rows = ggml_nrows(op->src[1]);
        const int64_t panels = (outputs + kLanes - 1) / kLanes;
        const int64_t chunk = std::max<int64_t>(1, panels / (params->nth * kChunksPerThread));
        if (params->ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, params->nth);
        }
        round_rows(params, op->src[1]);
        ggml_barrier(params->threadpool);
        for (int64_t at = params->ith; at * chunk < panels;
             at = ggml_threadpool_chunk_add(params->threadpool, 1)) {
            const int64_t end = std::min(panels, (at + 1) * chunk);
            for (int64_t panel = at * chunk; panel < end; ++panel) {
                const uint8_t * data = (const uint8_t *)matrix->data + panel * panel_bytes(columns);
                const int lanes = (int)std::min<int64_t>(kLanes, outputs - panel * kLanes);
                float * out = (float *)op->data + panel * kLanes;
                multiply_panel(data, (const uint8_t *)params->wdata, columns, rows, out, outputs,
                               lanes);
            }
        }
        return true;
    }

  private:
    static size_t panel_bytes(int64_t columns) {
        const size_t size =
            Format::head_bytes(columns) + (size_t)(columns / kBlock) * Format::kWeightBytes;
        return (size + 63) / 64 * 64;
    }

    static void multiply_panel(const uint8_t * panel, const uint8_t * rounded, int64_t columns,
                               int64_t rows, float * out, int64_t stride, int lanes) {
        for (int64_t row = 0; row < rows; row += kMostRows) {
            with_rows((int)std::min<int64_t>(kMostRows, rows - row), [&](auto count) {
                const auto * tile = (const RowBlock<count()> *)(rounded + rows_bytes(row, columns));
                panel_times_tile<Format, count()>(panel, tile, columns, out + row * stride, stride,
                                                  lanes);
            });
        }
    }

    // Every thread rounds some of the rows.
    static void round_rows(const ggml_compute_params * params, const ggml_tensor * x) {
        const int64_t columns = x->ne[0], rows = ggml_nrows(x);
        for (int64_t row = params->ith; row < rows; row += params->nth) {
            const int64_t i1 = row % x->ne[1], rest = row / x->ne[1];
            const int64_t i2 = rest % x->ne[2], i3 = rest / x->ne[2];
            const auto * from = (const float *)((const char *)x->data + i1 * x->nb[1] +
                                                i2 * x->nb[2] + i3 * x->nb[3]);
            const int64_t first = row / kMostRows * kMostRows;
            with_rows((int)std::min<int64_t>(kMostRows, rows - first), [&](auto count) {
                uint8_t * tile = (uint8_t *)params->wdata + rows_bytes(first, columns);
                round_row((RowBlock<count()> *)tile, (int)(row - first), from, columns,
                          Format::kOffset);
            });
        }
    }
};

} // namespace

Kernel * kernel_for(enum ggml_type type) {
    static KernelOf<Q4_0> q4_0;
    static KernelOf<Q4_1> q4_1;
    static KernelOf<Q5_0> q5_0;
    static KernelOf<Q8_0> q8_0;
    static KernelOf<Q4_K> q4_k;
    static KernelOf<Q6_K> q6_k;
    switch (type) {
    case GGML_TYPE_Q4_0:
        return &q4_0;
    case GGML_TYPE_Q4_1:
        return &q4_1;
    case GGML_TYPE_Q5_0:
        return &q5_0;
    case GGML_TYPE_Q8_0:
        return &q8_0;
    case GGML_TYPE_Q4_K:
        return &q4_k;
    case GGML_TYPE_Q6_K:
        return &q6_k;
    default:
        return nullptr;
    }
}

} // namespace uitweg

#endif
