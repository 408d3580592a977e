// cuBLAS as its users call it: cublasGemmEx, f32 sums, its own choice of algorithm.
#include <memory>

#include "bench/peers/cublas_library.hpp"
#include "bench/peers/peers.hpp"
#include "bench/workloads/buffer.hpp"

namespace tmaops::bench {
namespace {

struct CublasContext {
  explicit CublasContext(Device device)
      : workspace(DType::u8, Layout::contiguous({static_cast<std::int64_t>(cublas::kWorkspaceBytes)}), device) {
    cublas::check(library.create(&handle), library.status_text, "a GPU that cuBLAS can use");
  }
  ~CublasContext() { library.destroy(handle); }
  CublasContext(const CublasContext&) = delete;
  CublasContext& operator=(const CublasContext&) = delete;

  const cublas::Library library{};
  Buffer workspace;
  cublas::Handle handle = nullptr;
};

}  // namespace

std::unique_ptr<Implementation> make_cublas(const Workload& workload, Timer& timer) {
  const cublas::Product product = cublas::product_of(workload);
  const auto context = std::make_shared<CublasContext>(workload.info().device);
  std::vector<Call> calls;
  for (int set = 0; set < workload.sets(); ++set) {
    calls.push_back([context, p = product, a = workload.tensor("a", set).data, b = workload.tensor("b", set).data,
                     d = workload.tensor("d", set).data](Stream stream) {
      const cublas::Library& library = context->library;
      const float one = 1;
      const float zero = 0;
      const auto check = [&](cublas::Status status) {
        cublas::check(status, library.status_text, "a product that cuBLAS takes");
      };
      check(library.set_stream(context->handle, stream));  // also takes the workspace away
      check(library.set_workspace(context->handle, context->workspace.view().data, cublas::kWorkspaceBytes));
      check(library.gemm(context->handle, p.transpose_b, p.transpose_a, p.rows, p.columns, p.inner, &one, b,
                         p.input_type, p.leading_b, a, p.input_type, p.leading_a, &zero, d, p.output_type, p.leading_d,
                         cublas::kCompute32F, cublas::kGemmDefault));
    });
  }
  timer.run(calls.front());  // refuses what it does not take before it is checked
  return std::make_unique<InProcess>("cublas", Kind::peer, "", timer, std::move(calls));
}

}  // namespace tmaops::bench
