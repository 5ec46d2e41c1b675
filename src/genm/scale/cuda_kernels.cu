// Kernels of exact and smoothed average precision for NVIDIA GPUs. `genm.scale.cuda` compiles and launches them.
//
// Legend, as in genm._math.average_precision_kernels. s fused score; b sharpness; for relevant document j and
// document d: g = sigmoid(b (s_d - s_j)), w = g (1 - g), h = w (1 - 2 g); z = x_d - x_j their scores' difference;
// R_j smoothed rank, Eq. (5); J_j position among the relevant documents. Derivatives leave out the factor b.
//
// Scores are float32. Query q's lie at scores + K * begin, ranker by ranker, each ranker's padded to a multiple of
// 8 documents, so that a warp reads 512 bytes in a row. A team of TEAM warps has one query. It reads the scores
// once for each GROUP relevant documents; all sums of these stay in registers. Differences are taken before they
// are weighted: close scores then lose no digits, and float32 suffices.
//
// Sums have one order: each thread's documents, then the threads of a warp as a tree, then the warps. Nothing is
// added by atomics, so results are the same in every run and on every device.
//
// Compile-time constants: K rankers; W weight vectors; GROUP relevant documents at once; ORDER of derivatives;
// SMOOTH_J smoothed positions; TIES ranks that ties could give; TEAM warps of a query; WARPS of a block (equal to
// TEAM unless that is 1); VEC documents that a thread reads at once; STREAM past the cache; UNROLL of the loop;
// MIN_BLOCKS that must fit on a multiprocessor, which bounds the registers.

typedef long long int64;

struct Query {
    int64 begin;           // first document, in documents
    int64 relevant_begin;  // first relevant document
    int64 out;             // where the ranks of its relevant documents go
    int size;              // documents
    int n_relevant;        // relevant documents that have a row
    int slot;              // its place among the results
    int divisor;           // all relevant documents
};

#define WHOLE_WARP 0xffffffffu
#define TRIANGLE (K * (K + 1) / 2)

extern "C" {
__constant__ float sharp[W * K];    // b log2(e) times the weights
__constant__ double exact[W * K];   // the weights
}

template <int N>
struct Vector {
    float at[N];
};

template <typename T>
__device__ __forceinline__ T read(const T* from) {
#if STREAM
    return __ldcs(from);  // not needed again
#else
    return __ldg(from);
#endif
}

__device__ __forceinline__ void load(const float* from, float (&to)[VEC]) {
#if VEC == 4
    const float4 x = read(reinterpret_cast<const float4*>(from));
    to[0] = x.x;
    to[1] = x.y;
    to[2] = x.z;
    to[3] = x.w;
#elif VEC == 2
    const float2 x = read(reinterpret_cast<const float2*>(from));
    to[0] = x.x;
    to[1] = x.y;
#else
    to[0] = read(from);
#endif
}

__device__ __forceinline__ float power_of_two(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

__device__ __forceinline__ float reciprocal(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

template <typename T>
__device__ __forceinline__ T sum_of_warp(T x) {
#pragma unroll
    for (int apart = 16; apart; apart >>= 1) x += __shfl_xor_sync(WHOLE_WARP, x, apart);
    return x;
}

// Replace each of the N sums of a thread by that of its team.
template <typename T, int N>
__device__ __forceinline__ void sum_of_team(T (&sums)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] = sum_of_warp(sums[i]);
#if TEAM > 1
    __shared__ T of_warps[TEAM][N];
    const int warp = threadIdx.x / 32;
    __syncthreads();  // the sums of the group before have been read
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = 0; i < N; ++i) of_warps[warp][i] = sums[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) {
        T total = of_warps[0][i];
#pragma unroll
        for (int other = 1; other < TEAM; ++other) total += of_warps[other][i];
        sums[i] = total;
    }
#endif
}

// Return the query of this team, or -1.
__device__ __forceinline__ int query_of_team(int n_queries) {
#if TEAM > 1
    const int64 at = blockIdx.x;
#else
    const int64 at = (int64)blockIdx.x * WARPS + threadIdx.x / 32;
#endif
    return at < n_queries ? (int)at : -1;
}

__device__ __forceinline__ int padded(int size) { return (size + 7) & ~7; }

// The fused score as the CPU sums it: from the first ranker to the last, without contraction.
template <typename Score>
__device__ __forceinline__ double fuse(const Score& x, int w) {
    double s = __dmul_rn(exact[w * K], (double)x[0]);
#pragma unroll
    for (int k = 1; k < K; ++k) s = __dadd_rn(s, __dmul_rn(exact[w * K + k], (double)x[k]));
    return s;
}

#ifdef SMOOTH

#if ORDER == 0
#define N_SUMS 1
#elif ORDER == 1
#define N_SUMS (1 + K)
#else
#define N_SUMS (1 + K + TRIANGLE)
#endif
#define N_COLUMNS N_SUMS
#define OWN ((N_COLUMNS + 31) / 32)

// Add one pair to the sums of g, w z and h z z'.
__device__ __forceinline__ void add_pair(float x, const float (&z)[K], float* sums) {
    const float e = power_of_two(fminf(-x, 80.0f));
    const float g = reciprocal(1.0f + e);
    sums[0] += g;
#if ORDER >= 1
    const float w = (e * g) * g;
#pragma unroll
    for (int k = 0; k < K; ++k) sums[1 + k] += w * z[k];
#endif
#if ORDER == 2
    const float h = w * ((e - 1.0f) * g);
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const float hz = h * z[k];
#pragma unroll
        for (int other = 0; other <= k; ++other) sums[1 + K + k * (k + 1) / 2 + other] += hz * z[other];
    }
#endif
}

// Return J_j, and with SMOOTH_J its derivatives in `sums`, laid out as those of R_j.
__device__ __forceinline__ double position(
    const float* relevant, int n, int j, const float (&x)[K], int w, int lane, float (&sums)[N_SUMS]) {
#if SMOOTH_J
#pragma unroll
    for (int i = 0; i < N_SUMS; ++i) sums[i] = 0.0f;
    for (int i = lane; i < n; i += 32) {
        float z[K], s = 0.0f;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            z[k] = relevant[(int64)i * K + k] - x[k];
            s += sharp[w * K + k] * z[k];
        }
        add_pair(s, z, sums);
    }
#pragma unroll
    for (int i = 0; i < N_SUMS; ++i) sums[i] = sum_of_warp(sums[i]);
    return 0.5 + (double)sums[0];  // 1, less the half that a document counts against itself
#else
    if (n == 1) return 1.0;
    const double own = fuse(x, w);
    int before = 0;
    for (int i = lane; i < n; i += 32) {
        const double s = fuse(relevant + (int64)i * K, w);
        before += s > own || (s == own && i < j);
    }
    return 1.0 + (double)sum_of_warp(before);
#endif
}

// Write of each query value, gradient and lower triangle of the Hessian as a row of `out`, (W, n_slots, columns).
extern "C" __global__ void __launch_bounds__(32 * WARPS, MIN_BLOCKS) smooth(
    const float* __restrict__ scores, const float* __restrict__ relevant_scores, const Query* __restrict__ queries,
    int n_queries, double b, int64 n_slots, double* __restrict__ out) {
    const int at = query_of_team(n_queries);
    if (at < 0) return;
    const Query q = queries[at];
    const int lane = threadIdx.x & 31, stride = padded(q.size);
    const float* own_scores = scores + q.begin * K;
    const float* relevant = relevant_scores + q.relevant_begin * K;
    double found[W][OWN];  // of column c, lane c % 32 holds what was found, in found[.][c / 32]
#pragma unroll
    for (int w = 0; w < W; ++w)
#pragma unroll
        for (int i = 0; i < OWN; ++i) found[w][i] = 0.0;

    for (int first = 0; first < q.n_relevant; first += GROUP) {
        float x_j[GROUP][K], sums[W * GROUP * N_SUMS];
#pragma unroll
        for (int j = 0; j < GROUP; ++j)
#pragma unroll
            for (int k = 0; k < K; ++k) x_j[j][k] = __ldg(relevant + (int64)min(first + j, q.n_relevant - 1) * K + k);
#pragma unroll
        for (int i = 0; i < W * GROUP * N_SUMS; ++i) sums[i] = 0.0f;

#pragma unroll UNROLL
        for (int d = (int)(threadIdx.x % (32 * TEAM)) * VEC; d < q.size; d += 32 * TEAM * VEC) {
            float x[K][VEC];
#pragma unroll
            for (int k = 0; k < K; ++k) load(own_scores + (int64)k * stride + d, x[k]);
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
#pragma unroll
                for (int j = 0; j < GROUP; ++j) {
                    float z[K];
#pragma unroll
                    for (int k = 0; k < K; ++k) z[k] = x[k][v] - x_j[j][k];
#pragma unroll
                    for (int w = 0; w < W; ++w) {
                        float s = sharp[w * K] * z[0];
#pragma unroll
                        for (int k = 1; k < K; ++k) s += sharp[w * K + k] * z[k];
                        // past the end: so far below that nothing float32 can show is added
                        add_pair(d + v < q.size ? s : -1e30f, z, sums + (w * GROUP + j) * N_SUMS);
                    }
                }
            }
        }
        sum_of_team(sums);
#pragma unroll
        for (int j = 0; j < GROUP; ++j) {
            if (first + j < q.n_relevant) {
#pragma unroll
                for (int w = 0; w < W; ++w) {
                    const float* of_pair = sums + (w * GROUP + j) * N_SUMS;
                    float dJ[N_SUMS];
                    const double J = position(relevant, q.n_relevant, first + j, x_j[j], w, lane, dJ);
                    const double over_R = 1.0 / (0.5 + (double)of_pair[0]), C = J * over_R * over_R;
                    if (lane == 0) found[w][0] += J * over_R;
#if ORDER >= 1
#pragma unroll
                    for (int k = 0; k < K; ++k) {
                        if (lane == (1 + k) % 32) {
                            double add = -C * (double)of_pair[1 + k];
#if SMOOTH_J
                            add += over_R * (double)dJ[1 + k];
#endif
                            found[w][(1 + k) / 32] += add;
                        }
                    }
#endif
#if ORDER == 2
#pragma unroll
                    for (int k = 0; k < K; ++k)
#pragma unroll
                        for (int other = 0; other <= k; ++other) {
                            const int c = 1 + K + k * (k + 1) / 2 + other;
                            if (lane == c % 32) {
                                const double R_k = of_pair[1 + k], R_other = of_pair[1 + other];
                                double add = C * (2.0 * over_R * R_k * R_other - (double)of_pair[c]);
#if SMOOTH_J
                                const double cross = (double)dJ[1 + k] * R_other + R_k * (double)dJ[1 + other];
                                add += over_R * ((double)dJ[c] - over_R * cross);
#endif
                                found[w][c / 32] += add;
                            }
                        }
#endif
                }
            }
        }
    }
    if (threadIdx.x % (32 * TEAM) < 32) {
        const double over_all = 1.0 / (double)q.divisor;
#pragma unroll
        for (int w = 0; w < W; ++w)
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const int c = 32 * i + lane;
                const double power = c == 0 ? 1.0 : c <= K ? b : b * b;
                if (c < N_COLUMNS) out[((int64)w * n_slots + q.slot) * N_COLUMNS + c] = found[w][i] * over_all * power;
            }
    }
}

#endif
#ifdef RANK

// Write the rank of each relevant document, (W, n_out); with TIES also the first and the last rank of its equals.
extern "C" __global__ void __launch_bounds__(32 * WARPS, MIN_BLOCKS) rank(
    const float* __restrict__ scores, const float* __restrict__ relevant_scores, const int* __restrict__ relevant_rows,
    const Query* __restrict__ queries, int n_queries, int64 n_out, int* __restrict__ ranks, int* __restrict__ firsts,
    int* __restrict__ lasts) {
    const int at = query_of_team(n_queries);
    if (at < 0) return;
    const Query q = queries[at];
    const int stride = padded(q.size);
    const float* own_scores = scores + q.begin * K;
    for (int first = 0; first < q.n_relevant; first += GROUP) {
        double s_j[W][GROUP];
        int row_j[GROUP], before[W * GROUP];
#if TIES
        int above[W * GROUP], reach[W * GROUP];
#endif
#pragma unroll
        for (int j = 0; j < GROUP; ++j) {
            const int64 place = q.relevant_begin + min(first + j, q.n_relevant - 1);
            row_j[j] = relevant_rows[place];
#pragma unroll
            for (int w = 0; w < W; ++w) s_j[w][j] = fuse(relevant_scores + place * K, w);
        }
#pragma unroll
        for (int i = 0; i < W * GROUP; ++i) {
            before[i] = 0;
#if TIES
            above[i] = reach[i] = 0;
#endif
        }
#pragma unroll UNROLL
        for (int d = (int)(threadIdx.x % (32 * TEAM)) * VEC; d < q.size; d += 32 * TEAM * VEC) {
            float x[K][VEC];
#pragma unroll
            for (int k = 0; k < K; ++k) load(own_scores + (int64)k * stride + d, x[k]);
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                Vector<K> own;
#pragma unroll
                for (int k = 0; k < K; ++k) own.at[k] = x[k][v];
                const bool is_document = d + v < q.size;
#pragma unroll
                for (int w = 0; w < W; ++w) {
                    const double s = fuse(own.at, w);
#pragma unroll
                    for (int j = 0; j < GROUP; ++j) {
                        const bool higher = is_document && s > s_j[w][j], equal = is_document && s == s_j[w][j];
                        before[w * GROUP + j] += higher || (equal && d + v < row_j[j]);
#if TIES
                        above[w * GROUP + j] += higher;
                        reach[w * GROUP + j] += higher || equal;
#endif
                    }
                }
            }
        }
        sum_of_team(before);
#if TIES
        sum_of_team(above);
        sum_of_team(reach);
#endif
        if (threadIdx.x % (32 * TEAM) == 0) {
#pragma unroll
            for (int w = 0; w < W; ++w)
#pragma unroll
                for (int j = 0; j < GROUP; ++j)
                    if (first + j < q.n_relevant) {
                        const int64 place = w * n_out + q.out + first + j;
                        ranks[place] = before[w * GROUP + j] + 1;
#if TIES
                        firsts[place] = above[w * GROUP + j] + 1;
                        lasts[place] = reach[w * GROUP + j];
#endif
                    }
        }
    }
}

// Write average precision, (W, n_slots), from ranks: one thread for each query and weight vector.
// Terms are added from the best rank to the worst, as the CPU does. No two ranks of a query are equal.
extern "C" __global__ void average_precision(
    const Query* __restrict__ queries, int n_queries, int64 n_out, int64 n_slots, const int* __restrict__ ranks,
    double* __restrict__ out) {
    const int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (int64)n_queries * W) return;
    const Query q = queries[at % n_queries];
    const int64 w = at / n_queries;
    const int* own = ranks + w * n_out + q.out;
    double total = 0.0;
    int last = 0;
    for (int j = 1; j <= q.n_relevant; ++j) {
        int next = 0x7fffffff;
        for (int i = 0; i < q.n_relevant; ++i)
            if (own[i] > last && own[i] < next) next = own[i];
        total += (double)j / (double)next;
        last = next;
    }
    out[w * n_slots + q.slot] = total / (double)q.divisor;
}

#endif
#ifdef TABLE

// Lay out the rows of some queries, (rows, K), ranker by ranker. One block for each query.
extern "C" __global__ void lay_out(
    const SOURCE* __restrict__ rows, const int64* __restrict__ starts, const int64* __restrict__ begins,
    float* __restrict__ scores) {
    const int64 row = starts[blockIdx.x] - starts[0];
    const int size = (int)(starts[blockIdx.x + 1] - starts[blockIdx.x]), stride = padded(size);
    float* own = scores + begins[blockIdx.x] * K;
    for (int d = threadIdx.x; d < stride; d += blockDim.x)
        for (int k = 0; k < K; ++k) own[(int64)k * stride + d] = d < size ? (float)rows[(row + d) * K + k] : 0.0f;
}

// Copy the scores of some rankers, which become rankers 0, 1 and so on. One block for each query.
extern "C" __global__ void pick(
    const float* __restrict__ scores, const int64* __restrict__ begins, const int* __restrict__ sizes,
    const int* __restrict__ picked, int n_picked, float* __restrict__ out) {
    const int stride = padded(sizes[blockIdx.x]);
    const float* own = scores + begins[blockIdx.x] * K;
    float* to = out + begins[blockIdx.x] * n_picked;
    for (int i = 0; i < n_picked; ++i)
        for (int d = threadIdx.x; d < stride; d += blockDim.x)
            to[(int64)i * stride + d] = own[(int64)picked[i] * stride + d];
}

// Write the scores of relevant documents, (relevant, K): one thread for each.
extern "C" __global__ void gather(
    const float* __restrict__ scores, const int64* __restrict__ begins, const int* __restrict__ sizes,
    const int* __restrict__ owners, const int* __restrict__ relevant_rows, int64 n_relevant,
    float* __restrict__ relevant_scores) {
    const int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n_relevant) return;
    const int q = owners[at];
    for (int k = 0; k < K; ++k)
        relevant_scores[at * K + k] = scores[begins[q] * K + (int64)k * padded(sizes[q]) + relevant_rows[at]];
}

// Write the variance of the fused scores within each query. One warp for each.
extern "C" __global__ void variance(
    const float* __restrict__ scores, const int64* __restrict__ begins, const int* __restrict__ sizes, int n_queries,
    double* __restrict__ out) {
    const int at = query_of_team(n_queries);
    if (at < 0) return;
    const int lane = threadIdx.x & 31, size = sizes[at], stride = padded(size);
    const float* own = scores + begins[at] * K;
    double total = 0.0;
    for (int turn = 0; turn < 2; ++turn) {
        const double mean = size ? total / size : 0.0;
        total = 0.0;
        for (int d = lane; d < size; d += 32) {
            double s = 0.0;
            for (int k = 0; k < K; ++k) s += exact[k] * (double)own[(int64)k * stride + d];
            total += turn ? (s - mean) * (s - mean) : s;
        }
        total = sum_of_warp(total);
    }
    if (lane == 0) out[at] = size ? total / size : 0.0;
}

#endif
#ifdef TOTAL

// Write sums over `chunk` rows each of weight times row, (W, chunks, columns). The grid is (chunks, blocks of up to
// 256 columns, W); threads are (rows at once, columns of the block).
extern "C" __global__ void total(
    const double* __restrict__ rows, const double* __restrict__ weights, int64 n_rows, int n_columns, int chunk,
    double* __restrict__ out) {
    __shared__ double parts[256];
    const int width = min(n_columns, 256), at_once = 256 / width;
    const int column = blockIdx.y * width + threadIdx.x % width, own = threadIdx.x / width;
    const int64 first = (int64)blockIdx.x * chunk, last = first + chunk < n_rows ? first + chunk : n_rows;
    const double* from = rows + (int64)blockIdx.z * n_rows * n_columns;
    double sum = 0.0;
    if (own < at_once && column < n_columns)
        for (int64 row = first + own; row < last; row += at_once)
            sum += (weights ? weights[row] : 1.0) * from[row * n_columns + column];
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (own == 0 && column < n_columns) {
        for (int other = 1; other < at_once; ++other) sum += parts[other * width + column % width];
        out[((int64)blockIdx.z * gridDim.x + blockIdx.x) * n_columns + column] = sum;
    }
}

#endif
