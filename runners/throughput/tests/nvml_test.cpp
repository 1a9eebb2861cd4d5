// NVIDIA's management library where there is none, and a stand-in for it.
#include "runners/throughput/nvml.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "runners/throughput/environment.h"

namespace asdbench {
namespace {

using ::testing::HasSubstr;

/// An environment variable for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(NvmlTest, WithoutTheLibraryNothingIsReadAndTheReasonIsKept) {
  const Nvml gpu("libno-such-library.so.1");
  EXPECT_THAT(gpu.why_not(), HasSubstr("libno-such-library.so.1"));
  EXPECT_EQ(gpu.device(), "");
  const GpuReading reading = gpu.read();
  EXPECT_FALSE(reading.sm_mhz || reading.power_w || reading.throttle_reasons ||
               reading.foreign_processes);
}

TEST(NvmlTest, ALibraryThatIsNotNvmlIsRefused) {
  EXPECT_THAT(Nvml("libm.so.6").why_not(), HasSubstr("lacks nvmlInit_v2"));
}

TEST(NvmlTest, ReadsWhatTheDeviceTells) {
  const Nvml gpu(ASDBENCH_FAKE_NVML);
  ASSERT_EQ(gpu.why_not(), "");
  EXPECT_EQ(gpu.device(), "Fake GPU, driver 1.2.3");
  const GpuReading reading = gpu.read();
  EXPECT_EQ(reading.sm_mhz, 1980);
  EXPECT_EQ(reading.memory_mhz, 2619);
  EXPECT_FALSE(reading.temperature_c) << "the device does not support it";
  EXPECT_DOUBLE_EQ(*reading.power_w, 345.6);
  EXPECT_EQ(reading.memory_mib, 3072);
  EXPECT_EQ(reading.throttle_reasons, 0U);
  EXPECT_EQ(reading.foreign_processes, 0) << "this process is no stranger";
}

TEST(NvmlTest, CountsStrangersAlsoWhenTheyAreMany) {
  const Nvml gpu(ASDBENCH_FAKE_NVML);
  {
    const Variable many("FAKE_NVML_PROCESSES", "100");
    EXPECT_EQ(gpu.read().foreign_processes, 99);
  }
  {
    const Variable none("FAKE_NVML_PROCESSES", "0");
    EXPECT_EQ(gpu.read().foreign_processes, 0);
  }
  const Variable elsewhere("FAKE_NVML_OTHER_NAMESPACE", "1");
  EXPECT_FALSE(gpu.read().foreign_processes) << "ids of another namespace say nothing";
}

TEST(NvmlTest, TakesTheDeviceThatCudaWouldTake) {
  {
    const Variable visible("CUDA_VISIBLE_DEVICES", "GPU-fake,1");
    EXPECT_EQ(Nvml(ASDBENCH_FAKE_NVML).why_not(), "");
  }
  {
    const Variable visible("CUDA_VISIBLE_DEVICES", "7");
    EXPECT_THAT(Nvml(ASDBENCH_FAKE_NVML).why_not(), HasSubstr("no device 7"));
  }
  const Variable broken("FAKE_NVML_INIT", "9");
  EXPECT_THAT(Nvml(ASDBENCH_FAKE_NVML).why_not(), HasSubstr("nvmlInit_v2 returned 9"));
}

std::vector<EnvironmentFigure> slot_of(const char* throttle, const char* processes = "1") {
  const Variable reasons("FAKE_NVML_THROTTLE", throttle);
  const Variable count("FAKE_NVML_PROCESSES", processes);
  EnvironmentSampler sampler(std::make_unique<Nvml>(ASDBENCH_FAKE_NVML));
  sampler.begin_slot();
  std::vector<EnvironmentFigure> figures = sampler.end_slot();
  // The cores' own frequency may differ between two slots of this test.
  std::erase_if(figures, [](const EnvironmentFigure& figure) { return figure.name == "core_mhz"; });
  return figures;
}

TEST(NvmlTest, AThrottledArmVoidsItsGroupUnlessAllWereOrItIsThePowerCap) {
  const auto free = slot_of("0x1");  // idle
  const auto hot = slot_of("0x20");
  const auto capped = slot_of("0x4");
  EXPECT_EQ(void_reason({0, 1}, {free, free}), "");
  EXPECT_EQ(void_reason({0, 1}, {free, capped}), "");
  EXPECT_EQ(void_reason({0, 1}, {hot, hot}), "");
  EXPECT_THAT(void_reason({0, 1}, {free, hot}), HasSubstr("throttled (software_thermal) under 1"));
  EXPECT_THAT(void_reason({0, 1}, {free, slot_of("0", "2")}), HasSubstr("another process"));
}

}  // namespace
}  // namespace asdbench
