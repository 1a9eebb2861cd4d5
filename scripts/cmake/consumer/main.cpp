// Decodes the toy target with the installed library, plainly and with a drafter under strict
// verification, and checks that both give the same tokens in fewer passes.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "runners/decoder.h"
#include "runners/models/toy_target.h"

namespace {

using namespace asdbench;

const auto& named(const auto& factories, const std::string& name) {
  return *std::ranges::find_if(factories,
                               [&](const auto& factory) { return factory.name == name; });
}

std::vector<TokenId> decode(const std::string& drafter_name, std::int32_t drafts,
                            std::size_t& passes) {
  const std::unique_ptr<Target> target = make_toy_target(Params());
  const std::unique_ptr<Drafter> drafter =
      named(drafter_factories(), drafter_name).make(Params(), DrafterContext{*target});
  const std::unique_ptr<Verifier> verifier = named(verifier_factories(), "strict").make(Params());
  const TargetInfo info = target->info();
  Decoder decoder(*target, *drafter, *verifier,
                  {.drafts = drafts, .requests = 1, .positions = 256});
  Request request("consumer/1", {1, 2, 3, 1, 2}, {.max_tokens = 96, .ignore_end_ids = true},
                  info.end_ids, Rng());
  decoder.run(request);
  if (!request.error().empty()) throw InternalError(request.error());
  passes = request.passes().size();
  return {request.output().begin(), request.output().end()};
}

}  // namespace

int main() try {
  std::size_t plain_passes = 0;
  std::size_t draft_passes = 0;
  const std::vector<TokenId> plain = decode("none", 0, plain_passes);
  const std::vector<TokenId> drafted = decode("ngram", 8, draft_passes);
  std::printf("consumer: %zu tokens, %zu passes plain, %zu with ngram\n", plain.size(),
              plain_passes, draft_passes);
  return plain.size() == 96 && plain == drafted && draft_passes < plain_passes ? 0 : 1;
} catch (const asdbench::Error& error) {
  std::fprintf(stderr, "consumer: %s\n", error.what());
  return 1;
}
