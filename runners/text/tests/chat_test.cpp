// Rendered prompts of the four families.
#include "runners/text/chat.h"

#include <gtest/gtest.h>

#include "eval/core/error.h"
#include "runners/text/tests/fixture_files.h"

namespace asdbench {
namespace {

Role role_of(const std::string& name) {
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant}) {
    if (name == name_of(role)) return role;
  }
  throw std::runtime_error("role " + name);
}

const std::vector<Message> kTurns = {
    {Role::kUser, "Hi"}, {Role::kAssistant, "Hello! "}, {Role::kUser, " Bye\n"}};

TEST(Chat, RendersSmolLm2AsTheFixture) {
  const std::filesystem::path file =
      std::filesystem::path(ASDBENCH_TEST_DATA) / "chat" / "smollm2.jsonl";
  for (const Json& entry : testing::read_lines(file)) {
    SCOPED_TRACE(entry.at("id"));
    std::vector<Message> messages;
    for (const Json& message : entry.at("messages")) {
      messages.push_back({role_of(message.at("role")), message.at("content")});
    }
    EXPECT_EQ(render_chat(ChatFamily::kSmolLm2, messages), entry.at("rendered").get<std::string>());
  }
}

TEST(Chat, RendersLlama31) {
  const std::string head =
      "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
      "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
  const std::string tail = "<|start_header_id|>assistant<|end_header_id|>\n\n";
  EXPECT_EQ(render_chat(ChatFamily::kLlama31, {{Role::kUser, "Hello"}}),
            head + "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>" + tail);
  EXPECT_EQ(
      render_chat(ChatFamily::kLlama31,
                  {{Role::kSystem, " \tBe brief.\n"}, {Role::kUser, "\u00a0Hi \u2003"}}),
      head + "Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>" + tail);
  EXPECT_EQ(render_chat(ChatFamily::kLlama31, kTurns),
            head +
                "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>"
                "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>" +
                tail);
  // All of it white space, a separator that Python strips too, and a byte that is no character.
  EXPECT_EQ(render_chat(ChatFamily::kLlama31, {{Role::kUser, " \x1C\n"}}),
            head + "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n<|eot_id|>" + tail);
  EXPECT_EQ(render_chat(ChatFamily::kLlama31, {{Role::kUser, " \xFF "}}),
            head + "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n\xFF<|eot_id|>" + tail);
}

TEST(Chat, RendersQwen25WithItsDefaultSystem) {
  EXPECT_EQ(render_chat(ChatFamily::kQwen25, kTurns),
            "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
            "assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello! "
            "<|im_end|>\n<|im_start|>user\n Bye\n<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render_chat(ChatFamily::kQwen25, {{Role::kSystem, "S"}, {Role::kUser, "U"}}),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(Chat, RendersQwen3WithAndWithoutThinking) {
  const std::string hello = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(render_chat(ChatFamily::kQwen3, {{Role::kUser, "Hello"}}, {.thinking = true}), hello);
  EXPECT_EQ(render_chat(ChatFamily::kQwen3, {{Role::kUser, "Hello"}}),
            hello + "<think>\n\n</think>\n\n");
  EXPECT_EQ(render_chat(ChatFamily::kQwen3, {{Role::kSystem, "S"}, {Role::kUser, "Hello"}},
                        {.thinking = true}),
            "<|im_start|>system\nS<|im_end|>\n" + hello);
}

TEST(Chat, DropsTheThinkingOfEarlierQwen3Turns) {
  struct Case {
    const char* reply;
    const char* kept;
  };
  for (const Case entry : {
           Case{"<think>\n\n</think>\n\nFour.\n", "Four.\n"},
           Case{"<think>\na\n</think>\n\n\nb", "b"},
           Case{"plain", "plain"},
           Case{"\n\nplain", "\n\nplain"},  // nothing to strip, nothing stripped
           Case{"<think>never closed", "<think>never closed"},
           Case{"<think>a</think>b</think>\nc", "c"},
           Case{"no opening</think>\nd", "d"},
           Case{"<think>x</think>\n", ""},
       }) {
    EXPECT_EQ(render_chat(ChatFamily::kQwen3,
                          {{Role::kUser, "1"}, {Role::kAssistant, entry.reply}, {Role::kUser, "2"}},
                          {.thinking = true}),
              std::string("<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n") + entry.kept +
                  "<|im_end|>\n<|im_start|>user\n2<|im_end|>\n<|im_start|>assistant\n");
  }
  // Other families and other roles keep the tags.
  EXPECT_NE(render_chat(ChatFamily::kQwen3, {{Role::kUser, "<think>a</think>b"}}).find("a</think>"),
            std::string::npos);
  EXPECT_THROW(render_chat(ChatFamily::kQwen3, {{Role::kUser, "1"}, {Role::kAssistant, "2"}}),
               InternalError);
}

TEST(Chat, KnowsTheTemplateOfSmolLm2) {
  const std::string smollm2 =
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
      "'<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
      "Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
      "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
      "'<|im_start|>assistant\n' }}{% endif %}";
  EXPECT_EQ(family_of_template(smollm2), ChatFamily::kSmolLm2);
  EXPECT_EQ(family_of_template(smollm2 + " "), std::nullopt);
  EXPECT_EQ(family_of_template(""), std::nullopt);
}

}  // namespace
}  // namespace asdbench
