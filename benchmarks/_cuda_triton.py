"""The gradient of queries with one relevant document in Triton, which `benchmarks.cuda` compares with."""

import torch
import triton
import triton.language as tl


@triton.jit
def _smooth(scores, relevant, sharp, out, n, stride, K: tl.constexpr, BLOCK: tl.constexpr):
    query = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK)
    s = tl.zeros([BLOCK], tl.float32)
    for k in tl.static_range(K):
        x = tl.load(scores + (query * K + k) * stride + d, mask=d < n, other=0.0)
        s += tl.load(sharp + k) * (x - tl.load(relevant + query * K + k))
    s = tl.where(d < n, s, -80.0)
    e = tl.exp2(tl.minimum(-s, 80.0))
    g = 1.0 / (1.0 + e)
    w = (e * g) * g
    tl.store(out + query * (K + 1), tl.sum(g, axis=0))
    for k in tl.static_range(K):
        x = tl.load(scores + (query * K + k) * stride + d, mask=d < n, other=0.0)
        z = x - tl.load(relevant + query * K + k)
        tl.store(out + query * (K + 1) + 1 + k, tl.sum(w * z, axis=0))


def time_smooth(scores, relevant, sharp, n_documents, n_queries, repeats=20):
    """Return ms of the fastest choice of warps, all times, and (Q, K + 1) sums of g and of w z.

    Arrays are CuPy's.
    """
    K, stride = len(sharp), -(-n_documents // 8) * 8
    x, r, b = (torch.from_dlpack(array) for array in (scores, relevant, sharp))
    out = torch.empty((n_queries, K + 1), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(n_documents)
    times = {}
    for warps in (2, 4, 8):

        def run(warps=warps):
            _smooth[(n_queries,)](x, r, b, out, n_documents, stride, K=K, BLOCK=block, num_warps=warps)

        run()
        torch.cuda.synchronize()
        found = []
        for _ in range(repeats):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            found.append(begin.elapsed_time(end))
        times[warps] = sorted(found)[len(found) // 2]
    return min(times.values()), times, out.cpu().numpy()
