// Decodes what scripts/bench/peers asks for, one JSON object a line, so that two programs can take
// turns.
//
// argv: engine (native | torch), a model (name or file), threads (0: one per core), activations.
// stdin, one job a line:
//   {"prompt": [ids], "tokens": n, "rows": r, "requests": b}: prefill of b requests, then n steps
//     over r rows of each (the pending token and r - 1 drafts that are thrown away); answered by
//     {"tokens": [ids of the first request], "prefill_s": of the first request, "steps_s": [n]}
//   {"read": true}: {"bytes_per_s": what the threads read from memory, "weights": bytes of a step}
// One line that says that the model is ready comes before all answers.
#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/kernels/isa.h"
#include "runners/kernels/read_rate.h"
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
  const auto batch = job.at("requests").get<std::int32_t>();
  const auto prompt = job.at("prompt").get<std::vector<TokenId>>();
  const auto positions = static_cast<std::int64_t>(prompt.size()) + tokens + rows;
  target.reserve({.requests = batch, .drafts = rows - 1, .positions = positions},
                 /*host_logits=*/false);
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Request*> live;
  double prefill = 0;
  for (std::int32_t slot = 0; slot < batch; ++slot) {
    requests.push_back(std::make_unique<Request>("peer", prompt,
                                                 RequestLimits{.max_tokens = tokens + 1},
                                                 std::span<const TokenId>(), Rng()));
    Request& request = *requests.back();
    request.slot = slot;
    const double took = seconds_of(
        [&] { request.commit_first(target.prefill(request).scores.choice[0], positions); });
    if (slot == 0) prefill = took;
    live.push_back(&request);
  }
  std::vector<double> steps;
  for (std::int32_t i = 0; i < tokens; ++i) {
    for (Request* request : live) {
      request->draft.assign(static_cast<std::size_t>(rows - 1), request->pending());
    }
    steps.push_back(seconds_of([&] {
      const StepView view = target.forward(live);
      for (std::size_t r = 0; r < live.size(); ++r) {
        Kept kept;
        kept.target_token = true;
        kept.tokens[0] = view.scores.choice[r * static_cast<std::size_t>(rows)];
        target.keep(*live[r], 0);
        live[r]->commit(kept, Decision());
      }
    }));
  }
  for (const Request* request : live) target.release(*request);
  const auto output = live.front()->output();
  return {{"tokens", std::vector<TokenId>(output.begin(), output.end())},
          {"prefill_s", prefill},
          {"steps_s", steps}};
}

int serve(const std::string& engine, const std::string& model_name, const std::string& threads,
          const std::string& activations) {
  Params params("peer_bench", {});
  params.set("device", "cpu", {});
  params.set("engine", engine, {});
  params.set("threads", threads, {});
  params.set("activations", activations, {});
  const Model model = make_model(model_name, params, "models");
  const std::int64_t weights = step_bytes(model_name, "models").value_or(0);
  kernels::Pool pool(std::stoi(threads) > 0 ? std::stoi(threads) : kernels::Pool::usable_cores());
  std::unique_ptr<kernels::ReadRate> memory;
  std::cout << Json({{"ready", model.target->info().name},
                     {"isa", kernels::name_of(kernels::active_isa())}})
                   .dump()
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const Json job = parse_json(line);
    if (!job.contains("read")) {
      std::cout << decode(*model.target, job).dump() << std::endl;
      continue;
    }
    if (memory == nullptr) memory = std::make_unique<kernels::ReadRate>(std::int64_t{512} << 20);
    std::cout << Json({{"bytes_per_s", memory->measure(pool)}, {"weights", weights}}).dump()
              << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace asdbench

int main(int argc, char** argv) {
  try {
    if (argc != 5) {
      std::cerr << "usage: peer_bench ENGINE MODEL THREADS ACTIVATIONS < JOBS\n";
      return 2;
    }
    return asdbench::serve(argv[1], argv[2], argv[3], argv[4]);
  } catch (const std::exception& error) {
    std::cerr << "peer_bench: " << error.what() << "\n";
    return 3;
  }
}
