// LibTorch's operators on emulated devices: each works on the bytes of its tensors with the CPU's
// kernel, in its turn in the current stream, while the host goes on as it would with a real device.
// Operators that make tensors, look at them from another side or record streams stay LibTorch's
// own, so that its allocator and its bookkeeping are those of a real device.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulated_gpu/host_kernels.h"
#include "tests/emulated_gpu/host_tensors.h"
#include "tests/emulated_gpu/own_kernels.h"
#include "tests/emulated_gpu/report.h"
#include "tests/emulated_gpu/runtime_api.h"

namespace emulated_gpu {
namespace {

// Left to LibTorch, besides those that give views of their arguments.
const std::set<std::string> kKept = {"aten::resize_",
                                     "aten::record_stream",
                                     "aten::is_pinned",
                                     "aten::_pin_memory",
                                     "aten::set_.source_Storage",
                                     "aten::set_.source_Storage_storage_offset",
                                     "aten::set_.source_Tensor",
                                     "aten::set_",
                                     "aten::empty.memory_format",
                                     "aten::empty_strided",
                                     "aten::_fused_sdp_choice",
                                     "aten::is_set_to"};

// Of operators that choose elements by tensors: those that LibTorch brings to the device, or turns
// into numbers of elements, for which the host waits.
bool is_read_by_host(const Tensor& index) {
  return index.is_cpu() || index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

// Whether shapes or plain results depend on values, so that the host waits on real devices too.
bool depends_on_values(const c10::OperatorHandle& op, const Stack& arguments) {
  if (op.hasTag(at::Tag::data_dependent_output)) return true;
  for (const IValue& value : arguments) {
    if (!value.isOptionalTensorList()) continue;
    for (const auto& index : value.toOptionalTensorVector()) {
      if (index && index->defined() && is_read_by_host(*index)) return true;
    }
    return false;
  }
  return op.hasTag(at::Tag::dynamic_output_shape);
}

// What LibTorch's own entry to a kernel refuses: other devices, and tensors of the CPU unless they
// stand for a number or choose elements.
void require_one_device(const c10::OperatorHandle& op, const Stack& arguments, c10::Device device) {
  for (const IValue& value : arguments) {
    const bool chooses = value.isOptionalTensorList();
    visit_tensors(value, [&](const Tensor& tensor) {
      const bool fits = !tensor.defined() || tensor.device() == device ||
                        (tensor.is_cpu() && (chooses || tensor.dim() == 0));
      TORCH_CHECK(fits, "Expected all tensors to be on the same device, but found at least two, ",
                  tensor.device(), " and ", device, " (", name_of(op), ")");
    });
  }
}

// Work for a stream, where nobody is who could catch what it throws.
Work guarded(std::string name, Work work) {
  return [name = std::move(name), work = std::move(work)] {
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "emulated GPU: %s: %s\n", name.c_str(), error.what());
      std::abort();
    }
  };
}

class Operator {
 public:
  Operator(const c10::OperatorHandle& op, Stack arguments)
      : op_(op),
        arguments_(std::move(arguments)),
        device_(device_in(arguments_).value()),
        guard_(device_),
        stream_(stream_of(c10::cuda::getCurrentCUDAStream(device_.index()))),
        draw_(Draw::of(op, arguments_, device_)) {
    require_one_device(op_, arguments_, device_);
  }

  Stack run() {
    count("operator " + name_of(op_));
    if (auto results = results_known_beforehand()) {
      enqueue(*results);
      return *results;
    }
    TORCH_CHECK(!stream_.recording(),
                "CUDA error: operation not permitted when stream is capturing (", name_of(op_),
                ")");
    return run_at_once();
  }

 private:
  const c10::FunctionSchema& schema() const { return op_.schema(); }

  bool is_written(std::size_t argument) const {
    const auto* alias = schema().arguments()[argument].alias_info();
    return alias != nullptr && alias->isWrite();
  }

  // The written argument that result `i` is; none for a new tensor.
  std::optional<std::size_t> argument_of_result(std::size_t i) const {
    const auto* alias = schema().returns()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) return std::nullopt;
    for (std::size_t k = 0; k < schema().arguments().size(); ++k) {
      const auto* other = schema().arguments()[k].alias_info();
      if (other != nullptr && other->beforeSets() == alias->beforeSets()) return k;
    }
    return std::nullopt;
  }

  // What the caller gets, of the right shapes and not yet written; none where that depends on
  // values.
  std::optional<Stack> results_known_beforehand() const {
    if (depends_on_values(op_, arguments_)) return std::nullopt;
    Stack results;
    bool only_arguments = true;
    for (std::size_t i = 0; i < schema().returns().size(); ++i) {
      const auto argument = argument_of_result(i);
      only_arguments = only_arguments && argument;
      results.push_back(argument ? arguments_[*argument] : IValue());
    }
    if (only_arguments && !may_resize()) return results;
    const Shapes known = shapes();
    for (std::size_t k = 0; k < arguments_.size(); ++k) {
      if (!is_written(k) || !arguments_[k].isTensor()) continue;
      const Tensor target = arguments_[k].toTensor();
      const Tensor& shape = known.arguments[k].toTensor();
      if (target.defined() && target.sizes() != shape.sizes()) target.resize_(shape.sizes());
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!argument_of_result(i)) {
        results[i] =
            replaced(known.results[i], [&](const Tensor& shape) { return new_tensor(shape); });
      }
    }
    return results;
  }

  // An output without elements is one that the kernel gives its size.
  bool may_resize() const {
    bool found = false;
    for (std::size_t k = 0; k < arguments_.size(); ++k) {
      if (!is_written(k)) continue;
      visit_tensors(arguments_[k], [&](const Tensor& tensor) {
        found = found || (tensor.defined() && tensor.numel() == 0);
      });
    }
    return found;
  }

  struct Shapes {
    Stack arguments;
    Stack results;
  };

  // What LibTorch knows of shapes without bytes; else those that the kernel gives to zeros.
  Shapes shapes() const {
    const c10::impl::ExcludeDispatchKeyGuard below_autograd(
        c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    if (op_.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) {
      Shapes found = arguments_of(at::kMeta);
      try {
        op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &found.results);
        return found;
      } catch (const std::exception&) {  // what is wrong with the call, the kernel says better
      }
    }
    Shapes found = arguments_of(at::kCPU);
    call_host_kernel(op_, found.results, Draw());
    return found;
  }

  Shapes arguments_of(c10::DeviceType type) const {
    Stack stand_ins;
    for (const IValue& value : arguments_) {
      if (value.isDevice()) {
        stand_ins.emplace_back(c10::Device(type));
      } else if (value.isGenerator()) {
        stand_ins.emplace_back();
      } else {
        stand_ins.push_back(
            replaced(value, [&](const Tensor& tensor) { return stand_in(tensor, type); }));
      }
    }
    return {stand_ins, stand_ins};
  }

  Tensor new_tensor(const Tensor& shape) const {
    if (!shape.defined()) return shape;
    return at::empty_strided(shape.sizes(), shape.strides(), shape.options().device(device_));
  }

  Stack host_arguments() const {
    Stack values;
    for (const IValue& value : arguments_) {
      if (value.isDevice()) {
        values.emplace_back(c10::Device(at::kCPU));
      } else if (value.isGenerator()) {
        values.emplace_back();
      } else {
        // Numbers are passed by value.
        values.push_back(replaced(value, [](const Tensor& tensor) {
          return tensor.defined() && tensor.is_cpu() ? tensor.clone() : on_host(tensor);
        }));
      }
    }
    return values;
  }

  void enqueue(const Stack& results) const {
    auto work = [op = op_, values = host_arguments(), draw = draw_, targets = new_tensors(results),
                 is_new = is_new_result()] {
      Stack stack = values;
      call_host_kernel(op, stack, draw);
      std::size_t next = 0;
      for (std::size_t i = 0; i < stack.size(); ++i) {
        if (!is_new[i]) continue;
        visit_tensors(stack[i], [&](const Tensor& result) {
          if (result.defined()) targets[next++].copy_(result);
        });
      }
    };
    stream_.enqueue(guarded(name_of(op_), std::move(work)));
  }

  std::vector<bool> is_new_result() const {
    std::vector<bool> is_new;
    for (std::size_t i = 0; i < schema().returns().size(); ++i) {
      is_new.push_back(!argument_of_result(i));
    }
    return is_new;
  }

  // The bytes of those, in their order.
  std::vector<Tensor> new_tensors(const Stack& results) const {
    const std::vector<bool> is_new = is_new_result();
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!is_new[i]) continue;
      visit_tensors(results[i], [&](const Tensor& result) {
        if (result.defined()) tensors.push_back(on_host(result));
      });
    }
    return tensors;
  }

  Stack run_at_once() {
    count("host waits for a value");
    stream_.wait_until_idle();
    Stack stack = host_arguments();
    const Stack values = stack;
    call_host_kernel(op_, stack, draw_);
    for (std::size_t k = 0; k < arguments_.size(); ++k) {
      if (!is_written(k) || !values[k].isTensor()) continue;
      const Tensor target = arguments_[k].toTensor();
      if (target.defined() && target.sizes() != values[k].toTensor().sizes()) {
        target.resize_(values[k].toTensor().sizes());
        on_host(target).copy_(values[k].toTensor());
      }
    }
    for (std::size_t i = 0; i < stack.size(); ++i) {
      const auto argument = argument_of_result(i);
      stack[i] = argument ? arguments_[*argument] : replaced(stack[i], [&](const Tensor& result) {
        if (!result.defined()) return result;
        Tensor copy = new_tensor(result);
        on_host(copy).copy_(result);
        return copy;
      });
    }
    return stack;
  }

  const c10::OperatorHandle op_;
  const Stack arguments_;
  const c10::Device device_;
  const c10::cuda::CUDAGuard guard_;
  Stream& stream_;
  const Draw draw_;
};

void emulate(const c10::OperatorHandle& op, Stack* stack) {
  const std::size_t count_of_arguments = op.schema().arguments().size();
  Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count_of_arguments), stack->end());
  torch::jit::drop(*stack, count_of_arguments);
  for (IValue& result : Operator(op, std::move(arguments)).run())
    stack->push_back(std::move(result));
}

// Memory that the copy does not keep alive: LibTorch's allocators are told which stream uses it.
bool is_lent(const Tensor& tensor) {
  return tensor.is_cuda() || is_page_locked(tensor.const_data_ptr());
}

// As LibTorch's: the host waits for what it may not let go of or must have.
Tensor& copy(Tensor& target, const Tensor& source, bool non_blocking) {
  if (target.is_same(source) || target.numel() == 0) return target;
  const c10::Device device = target.is_cuda() ? target.device() : source.device();
  const c10::cuda::CUDAGuard guard(device);
  const auto current = c10::cuda::getCurrentCUDAStream(device.index());
  Stream& stream = stream_of(current);
  const Tensor expanded = source.expand(target.sizes());
  const Tensor& outside = target.is_cuda() ? source : target;
  const bool waits = outside.is_cpu() && (!non_blocking || (source.is_cuda() && !is_lent(target)));
  TORCH_CHECK(!stream.recording() || (!waits && is_lent(outside)),
              "CUDA error: operation not permitted when stream is capturing (copy)");
  if (outside.is_cpu() && is_lent(outside)) {
    const auto& storage = outside.storage();
    at::getHostAllocator(at::kCUDA)->record_event(storage.mutable_data(),
                                                  storage.data_ptr().get_context(), current);
  }
  const Tensor from = is_lent(source) ? on_host(expanded) : expanded.clone();
  stream.enqueue(guarded("copy", [from, to = on_host(target)] {
    const c10::impl::ExcludeDispatchKeyGuard below_autograd(
        c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    to.copy_(from);
  }));
  if (!waits) return target;
  count("host waits for a copy");
  stream.wait_until_idle();
  return target;
}

bool gives_views(const c10::FunctionSchema& schema) {
  for (const auto& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  }
  return false;
}

struct Silence : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// Runs when the library is loaded, after LibTorch has registered its own kernels.
const auto& registered = *[] {
  static Silence silence;  // LibTorch warns that kernels are replaced
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema() || !op->hasKernelForDispatchKey(c10::DispatchKey::CUDA)) continue;
    const std::string text = name_of(*op);
    const bool has_host_kernel =
        op->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU) || own_kernel(text) != nullptr;
    if (kKept.contains(text) || gives_views(op->schema()) || !has_host_kernel) continue;
    library->impl(text.c_str(), torch::CppFunction::makeFromBoxedFunction<&emulate>());
  }
  library->impl("copy_", TORCH_FN(copy));
  return library;
}();

}  // namespace
}  // namespace emulated_gpu
