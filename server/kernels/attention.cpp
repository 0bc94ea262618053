// Exact for every row: what a query gives depends on the cells that it may see, in their order, and
// on nothing else: not on how many queries there are, nor on cells of others between its own.
// (A mask is 0 or minus infinity here: it is something else only with ALiBi, which is left to
// llama.cpp.)
//
// Queries of the same key head lie in the lanes of a vector, since they share keys and values: of
// one row with seven heads to a key head, seven; of many rows, all. Where some lane may not see a
// cell, nothing is added there.

#include "attention.h"

#include "simd.h"

#ifdef UITWEG_LANES

#    include <algorithm>
#    include <cmath>
#    include <cstring>
#    include <limits>

namespace uitweg {
namespace {

constexpr uint16_t kHidden = 0xfc00; // minus infinity as a half float
constexpr int kKeys = 8;             // cells whose keys are multiplied side by side
constexpr int kValues = kLanes;      // of a cell's values, those that are summed at a time
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// A thread's own memory for one unit of work.
struct Scratch {
    int32_t * cells;  // that some lane may see
    uint32_t * lanes; // which lanes may see each
    float * weights;  // scores first, then their exponentials: a vector for each cell
    float * queries;  // a vector for each dimension
    float * keys;     // kKeys rows of floats

    Scratch(void * memory, int64_t cells_most, int64_t size) {
        cells = (int32_t *)memory;
        lanes = (uint32_t *)(cells + cells_most);
        weights = (float *)(lanes + cells_most);
        queries = weights + cells_most * kLanes;
        keys = queries + size * kLanes;
    }
    static size_t bytes(int64_t cells_most, int64_t size) {
        const size_t words = cells_most * (2 + kLanes) + size * (kLanes + kKeys);
        return (words * 4 + 63) / 64 * 64;
    }
};

struct Shape {
    const ggml_tensor *q, *k, *v, *mask, *out;
    int64_t size, cells, rows, key_heads, shared; // shared: query heads to a key head

    explicit Shape(const ggml_tensor * op)
        : q(op->src[0]), k(op->src[1]), v(op->src[2]), mask(op->src[3]), out(op), size(k->ne[0]),
          cells(k->ne[1]), rows(q->ne[1]), key_heads(k->ne[2]), shared(q->ne[2] / k->ne[2]) {}

    int64_t groups() const { return (rows * shared + kLanes - 1) / kLanes; }
    int64_t units() const { return key_heads * groups(); }
};

// The cells that the rows from `first` to `last` may see.
int64_t find_cells(const Shape & shape, int64_t first, int64_t last, int64_t begin,
                   Scratch & scratch) {
    uint32_t lanes_of[kLanes] = {};
    for (int lane = 0; lane < kLanes; ++lane) {
        const int64_t row = (begin + lane) / shape.shared;
        if (row < shape.rows) {
            lanes_of[row - first] |= 1u << lane;
        }
    }
    int64_t found = 0;
    for (int64_t cell = 0; cell < shape.cells; ++cell) {
        uint32_t lanes = 0;
        for (int64_t row = first; row <= last; ++row) {
            const auto * masks =
                (const uint16_t *)((const char *)shape.mask->data + row * shape.mask->nb[1]);
            lanes |= masks[cell] == kHidden ? 0 : lanes_of[row - first];
        }
        scratch.cells[found] = (int32_t)cell;
        scratch.lanes[found] = lanes;
        found += lanes != 0;
    }
    return found;
}

// A query to each lane, times what scores are to be multiplied with.
void lay_out_queries(const Shape & shape, int64_t head, int64_t begin, float scale,
                     float * queries) {
    std::fill(queries, queries + shape.size * kLanes, 0.0f);
    for (int lane = 0; lane < kLanes; ++lane) {
        const int64_t row = (begin + lane) / shape.shared;
        if (row >= shape.rows) {
            break;
        }
        const int64_t of = head * shape.shared + (begin + lane) % shape.shared;
        const auto * query = (const float *)((const char *)shape.q->data + row * shape.q->nb[1] +
                                             of * shape.q->nb[2]);
        for (int64_t i = 0; i < shape.size; ++i) {
            queries[i * kLanes + lane] = query[i] * scale;
        }
    }
}

// Scores of all cells, and the largest of each lane.
Floats score(const Shape & shape, int64_t head, int64_t found, Scratch & scratch) {
    const char * keys = (const char *)shape.k->data + head * shape.k->nb[2];
    Floats most = broadcast(kLowest);
    for (int64_t at = 0; at < found; at += kKeys) {
        for (int i = 0; i < kKeys; ++i) {
            const int64_t cell = scratch.cells[std::min(at + i, found - 1)];
            const char * key = keys + cell * shape.k->nb[1];
            for (int64_t j = 0; j < shape.size; j += kLanes) {
                store(scratch.keys + i * shape.size + j, halves(key + 2 * j));
            }
        }
        Floats sums[kKeys];
        for (int i = 0; i < kKeys; ++i) {
            sums[i] = zero_floats();
        }
        for (int64_t j = 0; j < shape.size; ++j) {
            const Floats query = load(scratch.queries + j * kLanes);
            for (int i = 0; i < kKeys; ++i) {
                sums[i] = multiply_add(query, broadcast(scratch.keys[i * shape.size + j]), sums[i]);
            }
        }
        for (int i = 0; i < kKeys && at + i < found; ++i) {
            const Floats seen = choose(scratch.lanes[at + i], sums[i], broadcast(kLowest));
            store(scratch.weights + (at + i) * kLanes, seen);
            most = maximum(most, seen);
        }
    }
    return most;
}

// Scores to weights; their sum in each lane.
Floats weigh(int64_t found, Floats most, float * weights) {
    Floats sum = zero_floats();
    most = maximum(most, broadcast(-3e38f)); // a lane that sees nothing
    for (int64_t at = 0; at < found; ++at) {
        const Floats weight = exponential(subtract(load(weights + at * kLanes), most));
        store(weights + at * kLanes, weight);
        sum = add(sum, weight);
    }
    return sum;
}

// Values of all cells by their weights, into the rows of the lanes.
void mix(const Shape & shape, int64_t head, int64_t begin, int64_t found, Floats sum,
         const Scratch & scratch) {
    const char * values = (const char *)shape.v->data + head * shape.v->nb[2];
    const Floats share = divide(broadcast(1.0f), maximum(sum, broadcast(1e-37f)));
    const int64_t used = std::min<int64_t>(kLanes, shape.rows * shape.shared - begin);
    const uint32_t all = (1u << used) - 1;
    for (int64_t first = 0; first < shape.size; first += kValues) {
        Floats mixed[kValues];
        for (int i = 0; i < kValues; ++i) {
            mixed[i] = zero_floats();
        }
        for (int64_t at = 0; at < found; ++at) {
            float value[kValues];
            store(value, brain_halves(values + scratch.cells[at] * shape.v->nb[1] + 2 * first));
            const Floats weight = load(scratch.weights + at * kLanes);
            const uint32_t lanes = scratch.lanes[at];
            for (int i = 0; i < kValues; ++i) {
                const Floats more = multiply_add(weight, broadcast(value[i]), mixed[i]);
                mixed[i] = lanes == all ? more : choose(lanes, more, mixed[i]);
            }
        }
        float by_lane[kValues][kLanes];
        for (int i = 0; i < kValues; ++i) {
            store(by_lane[i], multiply(mixed[i], share));
        }
        for (int lane = 0; lane < kLanes; ++lane) {
            const int64_t row = (begin + lane) / shape.shared;
            if (row >= shape.rows) {
                break;
            }
            const int64_t of = head * shape.shared + (begin + lane) % shape.shared;
            auto * out =
                (float *)((char *)shape.out->data + of * shape.out->nb[1] + row * shape.out->nb[2]);
            for (int i = 0; i < kValues; ++i) {
                out[first + i] = by_lane[i][lane];
            }
        }
    }
}

class Attention : public ggml::cpu::tensor_traits {
  public:
    bool work_size(int threads, const ggml_tensor * op, size_t & size) override {
        const Shape shape(op);
        size = threads * Scratch::bytes(shape.cells, shape.size);
        return true;
    }

    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        const Shape shape(op);
        float scale;
        std::memcpy(&scale, op->op_params, sizeof(scale));
        char * memory =
            (char *)params->wdata + params->ith * Scratch::bytes(shape.cells, shape.size);
        Scratch scratch(memory, shape.cells, shape.size);
        if (params->ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, params->nth);
        }
        ggml_barrier(params->threadpool);
        for (int64_t unit = params->ith; unit < shape.units();
             unit = ggml_threadpool_chunk_add(params->threadpool, 1)) {
            const int64_t head = unit / shape.groups();
            const int64_t begin = unit % shape.groups() * kLanes;
            const int64_t end = std::min(begin + kLanes, shape.rows * shape.shared);
            const int64_t found =
                find_cells(shape, begin / shape.shared, (end - 1) / shape.shared, begin, scratch);
            lay_out_queries(shape, head, begin, scale, scratch.queries);
            const Floats most = score(shape, head, found, scratch);
            const Floats sum = weigh(found, most, scratch.weights);
            mix(shape, head, begin, found, sum, scratch);
        }
        return true;
    }
};

} // namespace

ggml::cpu::tensor_traits * attention_for(const ggml_tensor * op) {
    static Attention attention;
    float bias, cap;
    std::memcpy(&bias, op->op_params + 1, sizeof(bias));
    std::memcpy(&cap, op->op_params + 2, sizeof(cap));
    const ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2], *mask = op->src[3];
    const bool known =
        q->type == GGML_TYPE_F32 && k->type == GGML_TYPE_F16 && v->type == GGML_TYPE_BF16;
    const bool plain = bias == 0 && cap == 0 && op->src[4] == nullptr && mask != nullptr &&
                       mask->type == GGML_TYPE_F16 && mask->ne[2] == 1 && mask->ne[3] == 1;
    const bool flat = q->ne[3] == 1 && q->ne[0] % kValues == 0 && k->ne[0] == v->ne[0] &&
                      q->ne[2] % k->ne[2] == 0 && k->ne[2] == v->ne[2] && q->nb[0] == 4 &&
                      k->nb[0] == 2 && v->nb[0] == 2;
    return known && plain && flat ? &attention : nullptr;
}

} // namespace uitweg

#endif
