// cuBLASLt at its best: every algorithm that its heuristic proposes is timed on the case, and the fastest is the peer.
#include <array>
#include <memory>

#include "bench/peers/cublas_library.hpp"
#include "bench/peers/peers.hpp"
#include "bench/workloads/buffer.hpp"

namespace tmaops::bench {
namespace {

constexpr int kAlgorithms = 16;

/// What becomes of the product: D = act(alpha A B + beta C + bias).
struct Epilogue {
  float alpha = 1, beta = 0;
  bool bias = false, relu = false;
};

Epilogue epilogue_of(const Workload& workload) {
  const nlohmann::json parameters = workload.peer_parameters();
  const std::string activation = parameters["activation"];
  if (parameters["bias"] == "row") peer_refuses("cuBLASLt", "a bias along the columns of D");
  if (activation != "none" && activation != "relu")  // its GELU is the one by tanh
    peer_refuses("cuBLASLt", "relu, or no activation");
  return {parameters["alpha"], parameters["beta"], parameters["bias"] == "column", activation == "relu"};
}

/// Addresses of a call.
struct Operands {
  const void *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
  void* d = nullptr;
};

/// Everything but the operands' addresses. Releases what was created when the last call that uses it is gone.
class CublasLtContext {
 public:
  CublasLtContext(const cublas::Product& p, const Epilogue& epilogue, Device device)
      : epilogue_(epilogue),
        workspace_(DType::u8, Layout::contiguous({static_cast<std::int64_t>(cublas::kWorkspaceBytes)}), device) {
    check(library_.create(&handle_));
    check(library_.product_create(&product_, cublas::kCompute32F, cublas::kReal32F));
    check(library_.product_set(product_, cublas::kTransposeA, &p.transpose_b, sizeof p.transpose_b));
    check(library_.product_set(product_, cublas::kTransposeB, &p.transpose_a, sizeof p.transpose_a));
    const int kind = epilogue.bias || epilogue.relu
                         ? (epilogue.bias ? cublas::kBias : 0) + (epilogue.relu ? cublas::kRelu : 0)
                         : cublas::kPlainEpilogue;
    check(library_.product_set(product_, cublas::kEpilogue, &kind, sizeof kind));
    matrix(first_, p.input_type, p.rows, p.inner, p.transpose_b, p.leading_b);
    matrix(second_, p.input_type, p.inner, p.columns, p.transpose_a, p.leading_a);
    matrix(result_, p.output_type, p.rows, p.columns, 0, p.leading_d);
    check(library_.preference_create(&preference_));
    check(library_.preference_set(preference_, cublas::kMaxWorkspaceBytes, &cublas::kWorkspaceBytes,
                                  sizeof cublas::kWorkspaceBytes));
  }
  ~CublasLtContext() {
    if (preference_ != nullptr) library_.preference_destroy(preference_);
    for (cublas::Descriptor one : {first_, second_, result_})
      if (one != nullptr) library_.matrix_destroy(one);
    if (product_ != nullptr) library_.product_destroy(product_);
    if (handle_ != nullptr) library_.destroy(handle_);
  }
  CublasLtContext(const CublasLtContext&) = delete;
  CublasLtContext& operator=(const CublasLtContext&) = delete;

  std::vector<cublas::Algorithm> algorithms() const {
    std::array<cublas::HeuristicResult, kAlgorithms> results{};
    int found = 0;
    check(library_.heuristic(handle_, product_, first_, second_, result_, result_, preference_, kAlgorithms,
                             results.data(), &found));
    std::vector<cublas::Algorithm> usable;
    for (int i = 0; i < found; ++i)
      if (const auto& one = results[static_cast<std::size_t>(i)]; one.state == 0) usable.push_back(one.algorithm);
    return usable;
  }
  void run(const cublas::Algorithm& algorithm, const Operands& on, Stream stream) const {
    if (epilogue_.bias) check(library_.product_set(product_, cublas::kBiasPointer, &on.bias, sizeof on.bias));
    check(library_.matmul(handle_, product_, &epilogue_.alpha, on.b, first_, on.a, second_, &epilogue_.beta,
                          on.c != nullptr ? on.c : on.d, result_, on.d, result_, &algorithm, workspace_.view().data,
                          cublas::kWorkspaceBytes, stream));
  }

 private:
  void check(cublas::Status status) const {
    cublas::check(status, library_.status_text, "a product that cuBLASLt takes");
  }
  void matrix(cublas::Descriptor& made, int type, int rows, int columns, int transposed, int leading) {
    if (transposed != 0) std::swap(rows, columns);
    check(library_.matrix_create(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                 leading));
  }

  const cublas::LtLibrary library_{};
  const Epilogue epilogue_;
  Buffer workspace_;
  cublas::Handle handle_ = nullptr;
  cublas::Descriptor product_ = nullptr;
  cublas::Descriptor first_ = nullptr;   // our B
  cublas::Descriptor second_ = nullptr;  // our A
  cublas::Descriptor result_ = nullptr;
  cublas::Descriptor preference_ = nullptr;
};

std::vector<Call> calls_of(const std::shared_ptr<CublasLtContext>& context, const cublas::Algorithm& algorithm,
                           const Workload& workload) {
  std::vector<Call> calls;
  const nlohmann::json parameters = workload.peer_parameters();
  for (int set = 0; set < workload.sets(); ++set) {
    const auto data = [&](const char* name) { return workload.tensor(name, set).data; };
    const Operands on{.a = data("a"),
                      .b = data("b"),
                      .c = parameters["beta"] != 0.0 ? data("c") : nullptr,
                      .bias = parameters["bias"] != "none" ? data("bias") : nullptr,
                      .d = data("d")};
    calls.push_back([context, algorithm, on](Stream stream) { context->run(algorithm, on, stream); });
  }
  return calls;
}

}  // namespace

std::unique_ptr<Implementation> make_cublaslt(const Workload& workload, Timer& timer) {
  const auto context = std::make_shared<CublasLtContext>(cublas::product_of(workload, false), epilogue_of(workload),
                                                         workload.info().device);
  std::vector<std::vector<Call>> ways;
  for (const cublas::Algorithm& algorithm : context->algorithms())
    ways.push_back(calls_of(context, algorithm, workload));
  return std::make_unique<InProcess>(
      "cublaslt", Kind::peer, "", timer,
      fastest(std::move(ways), timer, "cuBLASLt", "a product for which its heuristic proposes an algorithm"));
}

}  // namespace tmaops::bench
