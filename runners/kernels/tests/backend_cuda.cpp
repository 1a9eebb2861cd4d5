// Runs the bodies on the first CUDA device; without one every test fails.
#include <cuda_runtime_api.h>

#include "runners/kernels/errors.h"
#include "runners/kernels/tests/backend.h"

namespace asdbench::kernels::testing {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw CudaError(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

/// An array in device memory, freed at the end of scope.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : bytes_(count * sizeof(T)) {
    check(cudaMalloc(&data_, bytes_ + 1), "cudaMalloc");
    check(cudaMemset(data_, 0x5a, bytes_ + 1), "cudaMemset");  // stale results must not pass
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return static_cast<T*>(data_); }
  void fill(const std::vector<T>& values, std::size_t offset = 0) {
    check(cudaMemcpy(get() + offset, values.data(), values.size() * sizeof(T),
                     cudaMemcpyHostToDevice),
          "copy to the device");
  }
  std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    check(cudaMemcpy(values.data(), data_, bytes_, cudaMemcpyDeviceToHost), "copy to the host");
    return values;
  }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace

std::vector<Backend> backends() { return {{"cuda"}}; }

HostScores score_rows_on(const Backend&, const std::vector<float>& logits,
                         const std::vector<TokenId>& draft, std::int64_t vocab, MaskedVocab masked,
                         int offset) {
  const std::size_t rows = draft.size();
  const auto shift = static_cast<std::size_t>(offset);
  DeviceArray<float> values(shift + logits.size());
  values.fill(logits, shift);
  DeviceArray<TokenId> drafted(rows);
  drafted.fill(draft);
  DeviceArray<TokenId> choice(rows);
  DeviceArray<float> choice_logit(rows);
  DeviceArray<float> runner_up(rows);
  DeviceArray<float> draft_logit(rows);
  DeviceArray<std::uint8_t> bad(rows);
  score_rows(values.get() + shift, drafted.get(), static_cast<std::int64_t>(rows), vocab, masked,
             {choice.get(), choice_logit.get(), runner_up.get(), draft_logit.get(), bad.get()},
             {.cuda = nullptr, .on_device = true});
  return {choice.read(), choice_logit.read(), runner_up.read(), draft_logit.read(), bad.read()};
}

}  // namespace asdbench::kernels::testing
