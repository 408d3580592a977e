// oneDNN's matmul primitive called by hand, as its documentation shows it.
#include <dlfcn.h>

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "bench/peers/peers.hpp"
#include "core/signals_held.hpp"
#include "ops/gemm/cpu/onednn/library.hpp"
#include "tmaops/gemm.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::bench {
namespace {

dnnl::memory::desc descriptor(const TensorView& tensor) {
  const auto rank = static_cast<std::size_t>(tensor.rank);
  return {dnnl::memory::dims(tensor.shape.begin(), tensor.shape.begin() + rank),
          ops::gemm::onednn::data_type(tensor.dtype),
          dnnl::memory::dims(tensor.strides.begin(), tensor.strides.begin() + rank)};
}

dnnl::algorithm algorithm_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return dnnl::algorithm::eltwise_relu;
    case Activation::gelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    case Activation::silu:
      return dnnl::algorithm::eltwise_swish;
    case Activation::none:
      break;
  }
  return dnnl::algorithm::undef;
}

/// oneDNN's OpenMP threads: as many as the CPU variants use.
void use_our_thread_count() {
  using Setter = void (*)(int);
  void* found = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (found != nullptr) reinterpret_cast<Setter>(found)(num_threads());
}

struct Product {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive{};
  std::unordered_map<int, dnnl::memory> arguments{};
};

Call make_call(const Workload& workload, int set) {
  const nlohmann::json parameters = workload.peer_parameters();
  auto product = std::make_shared<Product>();
  const TensorView a = workload.tensor("a", set);
  const TensorView b = workload.tensor("b", set);
  const TensorView d = workload.tensor("d", set);

  dnnl::primitive_attr attributes;
  const Activation activation = *parse_activation(parameters["activation"].get<std::string>());
  if (activation != Activation::none) {
    dnnl::post_ops operations;
    const float alpha = activation == Activation::silu ? 1 : 0;
#if DNNL_VERSION_MAJOR >= 3
    operations.append_eltwise(algorithm_of(activation), alpha, 0);
#else
    operations.append_eltwise(1, algorithm_of(activation), alpha, 0);
#endif
    attributes.set_post_ops(operations);
  }
  dnnl::memory::desc bias;
  if (parameters["bias"] != "none") {
    const TensorView given = workload.tensor("bias", set);
    dnnl::memory::dims shape(static_cast<std::size_t>(d.rank), 1);
    shape[static_cast<std::size_t>(parameters["bias"] == "row" ? d.rank - 2 : d.rank - 1)] = given.shape[0];
    dnnl::memory::dims strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
    bias = dnnl::memory::desc(shape, ops::gemm::onednn::data_type(given.dtype), strides);
    product->arguments[DNNL_ARG_BIAS] = dnnl::memory(bias, product->engine, given.data);
  }
  const bool has_bias = parameters["bias"] != "none";
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc chosen =
      has_bias
          ? dnnl::matmul::primitive_desc(product->engine, descriptor(a), descriptor(b), bias, descriptor(d), attributes)
          : dnnl::matmul::primitive_desc(product->engine, descriptor(a), descriptor(b), descriptor(d), attributes);
#else
  const dnnl::matmul::desc wanted = has_bias ? dnnl::matmul::desc(descriptor(a), descriptor(b), bias, descriptor(d))
                                             : dnnl::matmul::desc(descriptor(a), descriptor(b), descriptor(d));
  const dnnl::matmul::primitive_desc chosen(wanted, attributes, product->engine);
#endif
  product->primitive = dnnl::matmul(chosen);
  product->arguments[DNNL_ARG_SRC] = dnnl::memory(descriptor(a), product->engine, a.data);
  product->arguments[DNNL_ARG_WEIGHTS] = dnnl::memory(descriptor(b), product->engine, b.data);
  product->arguments[DNNL_ARG_DST] = dnnl::memory(descriptor(d), product->engine, d.data);
  return [product](Stream) {
    const SignalsHeld held;  // oneDNN's f32 kernel and a signal handler do not go together; its threads inherit this
    product->primitive.execute(product->stream, product->arguments);
    product->stream.wait();
  };
}

}  // namespace

std::unique_ptr<Implementation> make_onednn(const Workload& workload, Timer& timer) {
  if (workload.info().op != "gemm") peer_refuses("onednn", "a gemm: oneDNN has no such operator");
  const nlohmann::json parameters = workload.peer_parameters();
  if (parameters["alpha"] != 1.0 || parameters["beta"] != 0.0)
    peer_refuses("onednn", "alpha 1 and beta 0: this peer calls the plain matmul");
  for (const TensorSpec& spec : workload.tensors())
    if (spec.layout.size() == 0) peer_refuses("onednn", "a product that is not empty");
  use_our_thread_count();
  std::vector<Call> calls;
  try {
    for (int set = 0; set < workload.sets(); ++set) calls.push_back(make_call(workload, set));
  } catch (const dnnl::error& error) {
    peer_refuses("onednn", "types that this oneDNN takes on this CPU (it says: " + std::string(error.what()) + ")");
  }
  return std::make_unique<InProcess>("onednn", Kind::peer, "", timer, std::move(calls));
}

}  // namespace tmaops::bench
