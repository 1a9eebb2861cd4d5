// Reads pickled tensors with libtorch's own reader.
#include "runners/drafters/common/pickle.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include "eval/core/error.h"
#include "runners/checkpoint/mapped_file.h"

namespace asdbench {
namespace {

std::string_view dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    case at::kDouble:
      return "F64";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    case at::kBool:
      return "BOOL";
    case at::kByte:
      return "U8";
    default:
      return "";
  }
}

FileTensors tensors_of(const at::IValue& value, const std::string& where) {
  if (!value.isGenericDict()) {
    throw ModelError(ModelFault::kBadHeader,
                     fmt::format("{}: the pickle holds no dictionary of tensors", where));
  }
  FileTensors out;
  auto owned = std::make_shared<std::vector<at::Tensor>>();
  for (const auto& entry : value.toGenericDict()) {
    if (!entry.key().isString() || !entry.value().isTensor()) {
      throw ModelError(ModelFault::kBadHeader,
                       fmt::format("{}: an entry of the pickle is no named tensor", where));
    }
    const at::Tensor tensor = entry.value().toTensor().cpu().contiguous();
    const std::string name = entry.key().toStringRef();
    const std::string_view dtype = dtype_of(tensor.scalar_type());
    if (dtype.empty()) {
      throw ModelError(ModelFault::kBadDtype,
                       fmt::format("{}: tensor {} holds {}", where, shown(name),
                                   c10::toString(tensor.scalar_type())));
    }
    out.entries.push_back({.name = name,
                           .dtype = std::string(dtype),
                           .shape = tensor.sizes().vec(),
                           .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()),
                                     static_cast<std::size_t>(tensor.nbytes())}});
    owned->push_back(tensor);
  }
  out.owner = std::move(owned);
  return out;
}

}  // namespace

FileTensors read_pickle(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  const auto* begin = reinterpret_cast<const char*>(mapped.bytes().data());
  // torch.save has written zip files since version 1.6; libtorch reads no other kind.
  if (mapped.bytes().size() < 4 || std::string_view(begin, 2) != "PK") {
    throw ModelError(ModelFault::kBadHeader,
                     fmt::format("{}: not a zip file of torch.save; save it again with a present "
                                 "torch, or convert it to safetensors",
                                 file.string()));
  }
  try {
    return tensors_of(
        torch::jit::pickle_load(std::vector<char>(begin, begin + mapped.bytes().size())),
        file.string());
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    throw ModelError(
        ModelFault::kBadHeader,
        fmt::format("{}: cannot be unpickled: {}", file.string(), error.what_without_backtrace()));
  } catch (const std::exception& error) {
    throw ModelError(ModelFault::kBadHeader,
                     fmt::format("{}: cannot be unpickled: {}", file.string(), error.what()));
  }
}

}  // namespace asdbench
