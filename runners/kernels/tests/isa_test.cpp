// The choice of the instruction set, and the refusals around it.
#include "runners/kernels/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/errors.h"

namespace asdbench::kernels {
namespace {

constexpr Isa kAll[] = {Isa::kPlain, Isa::kAvx2, Isa::kAvx512};

TEST(IsaTest, ThePlainSetIsAlwaysThereAndFirst) {
  ASSERT_FALSE(supported_isas().empty());
  EXPECT_EQ(supported_isas().front(), Isa::kPlain);
}

TEST(IsaTest, WithoutAWishTheFastestSetIsChosen) {
  EXPECT_EQ(choose_isa(nullptr), supported_isas().back());
}

TEST(IsaTest, AWishIsGrantedOrRefusedNeverReplaced) {
  for (const Isa isa : kAll) {
    const std::string name(name_of(isa));
    if (supported(isa)) {
      EXPECT_EQ(choose_isa(name.c_str()), isa);
      EXPECT_NE(cpu_kernels(isa).score_rows, nullptr);
    } else {
      EXPECT_THROW(choose_isa(name.c_str()), IsaError) << name;
      EXPECT_THROW(cpu_kernels(isa), IsaError) << name;
    }
  }
}

TEST(IsaTest, AnUnknownNameIsRefusedWithTheUsableOnes) {
  for (const char* wanted : {"", "AVX2", "avx10", "avx2 "}) {
    try {
      choose_isa(wanted);
      ADD_FAILURE() << "accepted \"" << wanted << '"';
    } catch (const IsaError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("ASDBENCH_ISA=" + std::string(wanted)), std::string::npos) << message;
      EXPECT_NE(message.find("usable here: plain"), std::string::npos) << message;
    }
  }
}

TEST(IsaTest, TheEnvironmentDecidesForTheProcess) {
  // Nothing in this program asks for the active set before its variable is set here.
  ASSERT_EQ(setenv("ASDBENCH_ISA", "plain", 1), 0);
  EXPECT_EQ(active_isa(), Isa::kPlain);
  ASSERT_EQ(setenv("ASDBENCH_ISA", "unknown", 1), 0);
  EXPECT_EQ(active_isa(), Isa::kPlain) << "decided once";
  unsetenv("ASDBENCH_ISA");
}

TEST(DispatchTest, ScoreRowsRefusesImpossibleSizes) {
  const RowScores out{};
  EXPECT_THROW(score_rows(nullptr, nullptr, -1, 4, MaskedVocab::kNo, out), std::invalid_argument);
  EXPECT_THROW(score_rows(nullptr, nullptr, 1, -4, MaskedVocab::kNo, out), std::invalid_argument);
  EXPECT_THROW(score_rows(nullptr, nullptr, 1, std::int64_t{1} << 31, MaskedVocab::kNo, out),
               std::invalid_argument);
}

TEST(DispatchTest, ScoreRowsOnTheHostUsesTheActiveSet) {
  const float logits[] = {1.0f, 3.0f, 3.0f};
  const TokenId draft = 2;
  TokenId choice = -7;
  float choice_logit = 0;
  float runner_up = 0;
  float draft_logit = 0;
  std::uint8_t bad = 9;
  score_rows(logits, &draft, 1, 3, MaskedVocab::kNo,
             {&choice, &choice_logit, &runner_up, &draft_logit, &bad});
  EXPECT_EQ(choice, 1);
  EXPECT_EQ(choice_logit, 3.0f);
  EXPECT_EQ(runner_up, 3.0f);
  EXPECT_EQ(draft_logit, 3.0f);
  EXPECT_EQ(bad, 0);
}

#if !defined(ASDBENCH_CUDA_KERNELS)
TEST(DispatchTest, ADeviceStreamIsRefusedInABuildWithoutCuda) {
  EXPECT_THROW(score_rows(nullptr, nullptr, 1, 4, MaskedVocab::kNo, {}, {.on_device = true}),
               CudaError);
}
#endif

}  // namespace
}  // namespace asdbench::kernels
