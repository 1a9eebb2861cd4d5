// Decodes what scripts/bench/peers asks for, one JSON object a line, so that two programs can take
// turns.
//
// argv: engine (native | torch), a model (name or file), threads (0: one per core). stdin:
// {"prompt": [ids], "tokens": n, "rows": r}: prefill, then n passes over r rows each (the pending
// token and r - 1 drafts that are thrown away). stdout: {"tokens": [ids], "prefill_s": x,
// "decode_s": y}, after one line that says that the model is ready.
#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <string>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/models/models.h"

namespace asdbench {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Json decode(Target& target, const Json& job) {
  const auto rows = job.at("rows").get<std::int32_t>();
  const auto tokens = job.at("tokens").get<std::int32_t>();
  auto prompt = job.at("prompt").get<std::vector<TokenId>>();
  const auto positions = static_cast<std::int64_t>(prompt.size()) + tokens + rows;
  target.reserve({.requests = 1, .drafts = rows - 1, .positions = positions},
                 /*host_logits=*/false);
  Request request("peer", std::move(prompt), {.max_tokens = tokens + 1}, {}, Rng());
  Request* live[] = {&request};
  const double prefill = seconds_of(
      [&] { request.commit_first(target.prefill(request).scores.choice[0], positions); });
  const double decoding = seconds_of([&] {
    for (std::int32_t i = 0; i < tokens; ++i) {
      request.draft.assign(static_cast<std::size_t>(rows - 1), request.pending());
      Kept kept;
      kept.target_token = true;
      kept.tokens[0] = target.forward(live).scores.choice[0];
      target.keep(request, 0);
      request.commit(kept, Decision());
    }
  });
  target.release(request);
  const auto output = request.output();
  return {{"tokens", std::vector<TokenId>(output.begin(), output.end())},
          {"prefill_s", prefill},
          {"decode_s", decoding}};
}

int serve(const std::string& engine, const std::string& model_name, const std::string& threads) {
  Params params("peer_bench", {});
  params.set("device", "cpu", {});
  params.set("engine", engine, {});
  params.set("threads", threads, {});
  const Model model = make_model(model_name, params, "models");
  std::cout << Json({{"ready", model.target->info().name}}).dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << decode(*model.target, parse_json(line)).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace asdbench

int main(int argc, char** argv) {
  try {
    if (argc != 4) {
      std::cerr << "usage: peer_bench ENGINE MODEL THREADS < JOBS\n";
      return 2;
    }
    return asdbench::serve(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::cerr << "peer_bench: " << error.what() << "\n";
    return 3;
  }
}
