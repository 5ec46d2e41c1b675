// Runs CUDA kernels on the CPU: every thread of a block is a coroutine, blocks run one after the other.
//
// The kernels' own file is compiled as C++ behind this one. A thread gives way to the others where it meets them: in
// __shfl_xor_sync the lanes of its warp, in __syncthreads the threads of its block. A lane that takes part in another
// exchange than its neighbours, or that ends before them, ends the process with a message, as does a misaligned load.

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

struct Index {
    unsigned x, y, z;
};
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};

static Index threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

namespace cpu {

const int MOST_THREADS = 1024, STACK = 1 << 17;

struct Thread {
    ucontext_t context;  // where it begins; from then on it is left and entered by jumps, which ask no kernel
    jmp_buf place;
    char* stack;
    bool is_started, is_done;
    long n_exchanges, n_barriers;
    char slot[8];
};

static Thread threads[MOST_THREADS];
static jmp_buf scheduler;
static bool is_any_left;
static int current, n_threads;
static void (*body)(void*);
static void* body_argument;

static void fail(const char* message) {
    fprintf(stderr, "CUDA on CPU: block %u, thread %d: %s\n", blockIdx.x, current, message);
    abort();
}

static void give_way() {
    if (!_setjmp(threads[current].place)) _longjmp(scheduler, 1);
}

static void start() {
    body(body_argument);
    threads[current].is_done = true;
    give_way();
}

static void run_block() {
    for (int t = 0; t < n_threads; ++t) {
        Thread& thread = threads[t];
        if (!thread.stack) thread.stack = (char*)malloc(STACK);
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack;
        thread.context.uc_stack.ss_size = STACK;
        thread.context.uc_link = 0;
        thread.is_started = thread.is_done = false;
        thread.n_exchanges = thread.n_barriers = 0;
        makecontext(&thread.context, start, 0);
    }
    for (is_any_left = true; is_any_left;) {
        is_any_left = false;
        for (current = 0; current < n_threads; ++current)
            if (!threads[current].is_done) {
                threadIdx = {(unsigned)current, 0, 0};
                is_any_left = true;
                if (!_setjmp(scheduler)) {
                    if (threads[current].is_started) _longjmp(threads[current].place, 1);
                    threads[current].is_started = true;
                    setcontext(&threads[current].context);
                }
            }
    }
}

template <typename T>
T exchange(T value, int apart) {
    Thread& own = threads[current];
    memcpy(own.slot, &value, sizeof(T));
    const long number = ++own.n_exchanges;
    give_way();
    Thread& other = threads[current ^ apart];
    if (other.is_done || other.n_exchanges != number) fail("a lane of the warp takes no part in this shuffle");
    T found;
    memcpy(&found, other.slot, sizeof(T));
    give_way();
    return found;
}

template <typename T>
const T& aligned(const T* from) {
    if ((uintptr_t)from % sizeof(T)) fail("a load is not aligned");
    return *from;
}

}  // namespace cpu

template <typename T>
T __shfl_xor_sync(unsigned, T value, int apart) {
    return cpu::exchange(value, apart);
}

static void __syncthreads() {
    const long number = ++cpu::threads[cpu::current].n_barriers;
    for (bool is_waiting = true; is_waiting;) {
        is_waiting = false;
        for (int t = 0; t < cpu::n_threads; ++t) {
            const bool is_missing = cpu::threads[t].n_barriers < number;
            if (is_missing && cpu::threads[t].is_done) cpu::fail("a thread of the block ended before this barrier");
            is_waiting = is_waiting || is_missing;
        }
        if (is_waiting) cpu::give_way();
    }
}

template <typename T>
T __ldg(const T* from) {
    return cpu::aligned(from);
}

template <typename T>
T __ldcs(const T* from) {
    return cpu::aligned(from);
}

static double __dmul_rn(double a, double b) { return a * b; }
static double __dadd_rn(double a, double b) { return a + b; }
template <typename T>
T min(T a, T b) {
    return a < b ? a : b;
}

#include KERNELS

namespace cpu {

template <int... I>
struct Places {};
template <int N, int... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <int... I>
struct Count<0, I...> {
    typedef Places<I...> type;
};

template <typename... P>
struct Call {
    void (*kernel)(P...);
    void** arguments;
    template <int... I>
    void make(Places<I...>) {
        kernel(*(P*)arguments[I]...);
    }
    static void make_it(void* call) { ((Call*)call)->make(typename Count<sizeof...(P)>::type()); }
};

template <typename... P>
void launch(void (*kernel)(P...), const unsigned* grid, unsigned n, void** arguments) {
    Call<P...> call = {kernel, arguments};
    body = Call<P...>::make_it;
    body_argument = &call;
    n_threads = (int)n;
    blockDim = {n, 1, 1};
    gridDim = {grid[0], grid[1], grid[2]};
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                run_block();
            }
}

}  // namespace cpu

#define LAUNCHER(kernel)                                                                             \
    extern "C" void launch_##kernel(const unsigned* grid, unsigned n_threads, void** arguments) { \
        cpu::launch(kernel, grid, n_threads, arguments);                                             \
    }

#ifdef SMOOTH
LAUNCHER(smooth)
#endif
#ifdef RANK
LAUNCHER(rank)
LAUNCHER(average_precision)
#endif
#ifdef TABLE
LAUNCHER(lay_out)
LAUNCHER(pick)
LAUNCHER(gather)
LAUNCHER(variance)
#endif
#ifdef TOTAL
LAUNCHER(total)
#endif
