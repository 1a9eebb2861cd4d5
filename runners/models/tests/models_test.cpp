// Targets by name: what they are called, what they take, and how prompts and outputs become ids.
#include "runners/models/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/core/error.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kData = ASDBENCH_TEST_DATA;
const std::string kTiny = (kData / "llama_smollm_f16" / "model.gguf").string();

Params params_of(const std::map<std::string, std::string>& values) {
  Params params("target", {.file = "run.yaml", .line = 3, .path = "matrix.target[0]"});
  for (const auto& [key, value] : values) params.set(key, value, params.where());
  return params;
}

template <typename Error>
std::string message_of(const std::string& name, const Params& params) {
  try {
    make_model(name, params, kData / "nothing");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Models, BuiltInTargetsTakeBytes) {
  for (const std::string name : {"toy", "planted"}) {
    const Params params = params_of({{"vocab", "64"}, {"device", "cpu"}});
    const Model model = make_model(name, params, {});
    params.refuse_unread();
    EXPECT_EQ(model.target->info().vocab, 64);
    EXPECT_EQ(model.tokenizer, nullptr);
    std::string rendered;
    const std::vector<TokenId> ids =
        model.prompt_ids({.messages = {{Role::kUser, "A"}}}, &rendered);
    EXPECT_EQ(rendered, "user: A\n");
    EXPECT_THAT(ids, ElementsAre('u' % 64, 's' % 64, 'e' % 64, 'r' % 64, ':', ' ', 'A' % 64, '\n'));
    const TokenId end = model.target->info().end_ids.front();
    EXPECT_EQ(model.text(std::vector<TokenId>{0, 33, 1, end}), " A!");
    EXPECT_EQ(model.text(std::vector<TokenId>{end, 33}),
              std::string(1, static_cast<char>(' ' + end)) + "A");
    EXPECT_EQ(model.text({}), "");
  }
}

TEST(Models, BuiltInTargetsRefuseTheGpu) {
  EXPECT_THAT(message_of<ConfigError>("toy", params_of({{"device", "cuda"}})), HasSubstr("CPU"));
}

TEST(Models, KnownNamesAreSorted) {
  EXPECT_THAT(known_models(), ElementsAre("planted", "smollm2-135m", "toy"));
}

TEST(Models, AFileBringsTokenizerTemplateAndDigest) {
  const Params params = params_of({{"device", "cpu"}, {"threads", "1"}});
  const Model model = make_model(kTiny, params, {});
  params.refuse_unread();
  const TargetInfo info = model.target->info();
  EXPECT_EQ(info.name, "model");
  EXPECT_EQ(info.engine, "native");
  EXPECT_EQ(info.weight_dtype, "F16");
  EXPECT_EQ(info.sha256.size(), 64U);
  ASSERT_NE(model.tokenizer, nullptr);
  EXPECT_EQ(model.chat, ChatFamily::kSmolLm2);
  std::string rendered;
  const auto ids = model.prompt_ids({.messages = {{Role::kUser, "Hi there"}}}, &rendered);
  EXPECT_THAT(rendered,
              ::testing::EndsWith("<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_EQ(model.tokenizer->decode(ids), rendered);
  // The end id has no text; inside an output it is shown.
  const TokenId end = info.end_ids.front();
  std::vector<TokenId> output = model.tokenizer->encode("Hi");
  output.push_back(end);
  EXPECT_EQ(model.text(output), "Hi");
}

TEST(Models, AFolderWithOneFileIsThatFile) {
  EXPECT_EQ(make_model((kData / "llama_smollm_f16").string(), params_of({{"device", "cpu"}}), {})
                .target->info()
                .name,
            "model");
  EXPECT_THAT(message_of<ModelError>(kData.string(), params_of({})), HasSubstr("0 .gguf files"));
}

TEST(Models, AnUnknownTemplateIsAWarningOrAnError) {
  const Model model = make_model(kTiny, params_of({{"device", "cpu"}}), {});
  EXPECT_THAT(model.warnings, ::testing::Contains(HasSubstr("chat template")));
  EXPECT_THAT(
      message_of<ModelError>(kTiny, params_of({{"device", "cpu"}, {"strict_template", "true"}})),
      HasSubstr("strict_template: false"));
}

TEST(Models, WhatIsNotThereIsSaidWithTheRemedy) {
  EXPECT_THAT(message_of<ModelError>("smollm2-135m", params_of({})),
              HasSubstr("asdbench model fetch smollm2-135m"));
  EXPECT_THAT(message_of<ModelError>("no/such/file.gguf", params_of({})),
              HasSubstr("no/such/file.gguf"));
  EXPECT_THAT(message_of<ConfigError>(kTiny, params_of({{"engine", "troch"}})), HasSubstr("torch"));
  EXPECT_THAT(message_of<ConfigError>(kTiny, params_of({{"dtype", "float16"}})),
              HasSubstr("float32"));
}

TEST(Models, RoundedActivationsAreNamed) {
  for (const std::string type : {"bf16", "int8"}) {
    const Params params = params_of({{"engine", "native"}, {"activations", type}});
    EXPECT_EQ(make_model(kTiny, params, {}).target->info().activations, type);
    params.refuse_unread();
  }
  EXPECT_EQ(make_model(kTiny, params_of({{"device", "cpu"}}), {}).target->info().activations,
            "float32");
  EXPECT_THAT(message_of<ConfigError>(kTiny, params_of({{"activations", "int4"}})),
              HasSubstr("int8"));
#ifdef ASDBENCH_TORCH_ENGINE
  EXPECT_THAT(
      message_of<ConfigError>(kTiny, params_of({{"engine", "torch"}, {"activations", "bf16"}})),
      HasSubstr("engine native"));
#endif
}

TEST(Models, AnEngineThatCannotServeIsRefused) {
  EXPECT_THAT(message_of<ConfigError>(kTiny, params_of({{"engine", "native"}, {"device", "cuda"}})),
              HasSubstr("engine native runs on the CPU"));
#ifndef ASDBENCH_TORCH_ENGINE
  EXPECT_THAT(message_of<ConfigError>(kTiny, params_of({{"engine", "torch"}})),
              HasSubstr("-DASDBENCH_WITH_TORCH=ON"));
#endif
}

#ifdef ASDBENCH_TORCH_ENGINE
TEST(Models, TheTorchEngineIsThereWhenAskedFor) {
  const Model model =
      make_model(kTiny, params_of({{"engine", "torch"}, {"device", "cpu"}, {"threads", "1"}}), {});
  EXPECT_EQ(model.target->info().engine, "torch");
}
#endif

}  // namespace
}  // namespace asdbench
