// Fixed-work groups: every arm decodes the same counted tokens, in mirrored order.
#include "runners/throughput/fixed_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "eval/core/digest.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

DecoderOptions options_for(const Arm& arm, const std::vector<WorkItem>& work) {
  DecoderOptions options{.drafts = arm.drafts, .requests = arm.batch, .positions = 0};
  for (const WorkItem& item : work) {
    const auto positions =
        static_cast<std::int64_t>(item.prompt.size()) + item.tokens + 1 + arm.drafts + 1;
    options.positions = std::max(options.positions, positions);
  }
  return options;
}

/// Counted tokens after the first end id: text that no reader would have seen.
std::int64_t tokens_after_end(std::span<const TokenId> output, std::span<const TokenId> end_ids) {
  const auto is_end = [&](TokenId id) {
    return std::binary_search(end_ids.begin(), end_ids.end(), id);
  };
  const auto end = std::find_if(output.begin(), output.end(), is_end);
  return end == output.end() ? 0 : output.end() - end - 1;
}

/// Decodes `items` (at most one per slot) together and adds what was counted to `result`; false
/// when interrupted, and then nothing was added that may be used.
bool decode_together(Decoder& decoder, std::span<const WorkItem> items,
                     std::span<const TokenId> end_ids, const std::function<bool()>& interrupted,
                     SlotResult& result, Sha256& digest) {
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Request*> live;
  for (const WorkItem& item : items) {
    requests.push_back(std::make_unique<Request>(
        item.sample_id, item.prompt,
        RequestLimits{.max_tokens = item.tokens + 1, .ignore_end_ids = true}, end_ids, Rng()));
    requests.back()->slot = static_cast<std::int32_t>(requests.size()) - 1;
  }
  for (const auto& request : requests) {
    decoder.start(*request);
    result.prefill_ns += request->prefill_ns;
    if (!request->finished()) live.push_back(request.get());
  }
  const std::int64_t begin = now_ns();
  bool stopped = interrupted();
  while (!live.empty() && !stopped) {
    decoder.pass(live);
    std::erase_if(live, [](const Request* request) { return request->finished(); });
    stopped = interrupted();
  }
  result.decode_ns += now_ns() - begin;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Request& request = *requests[i];
    decoder.finish(request);
    if (stopped) continue;
    const std::span<const TokenId> output = request.output();
    const auto expected = static_cast<std::size_t>(items[i].tokens) + 1;
    if (!request.error().empty() || output.size() != expected) {
      throw DataError(fmt::format(
          "fixed work: prompt {} gave {} tokens, {} expected{}{}\n  choose shorter prompts, fewer "
          "speed.tokens, or leave this prompt out",
          items[i].sample_id, output.size(), expected, request.error().empty() ? "" : ": ",
          request.error()));
    }
    result.prompts += 1;
    result.tokens += static_cast<std::int64_t>(output.size()) - 1;
    result.post_end_tokens += tokens_after_end(output, end_ids);
    result.passes += static_cast<std::int64_t>(request.passes().size());
    for (const PassRecord& pass : request.passes()) {
      result.drafted += pass.drafted;
      result.accepted += pass.accepted;
    }
    digest.update(sha256_tokens(output));
  }
  return !stopped;
}

/// Whether the last three differ by less than 2 %.
bool steady(const std::vector<double>& times) {
  constexpr std::ptrdiff_t kLast = 3;
  constexpr double kLimit = 1.02;
  if (std::ssize(times) < kLast) return false;
  const auto [least, most] = std::minmax_element(times.end() - kLast, times.end());
  return *most < kLimit * *least;
}

}  // namespace

std::vector<std::size_t> slot_order(std::size_t arms, std::int64_t group) {
  std::vector<std::size_t> order;
  const std::size_t first = static_cast<std::size_t>(group) % std::max<std::size_t>(arms, 1);
  for (std::size_t i = 0; i < arms; ++i) order.push_back((first + i) % arms);
  for (std::size_t i = arms; i-- > 0;) order.push_back(order[i]);
  return order;
}

std::vector<SlotResult> run_group(Target& target, const std::vector<Arm>& arms,
                                  const std::vector<WorkItem>& work, std::int64_t group,
                                  const std::function<bool()>& interrupted) {
  const std::vector<TokenId> end_ids = target.info().end_ids;
  std::vector<SlotResult> results;
  EnvironmentSampler sampler;
  for (const std::size_t index : slot_order(arms.size(), group)) {
    const Arm& arm = arms[index];
    Decoder decoder(target, *arm.drafter, *arm.verifier, options_for(arm, work));
    SlotResult result{.arm = index, .slot = static_cast<std::int32_t>(results.size())};
    Sha256 digest;
    sampler.begin_slot();
    for (std::size_t i = 0; i < work.size(); i += static_cast<std::size_t>(arm.batch)) {
      const std::size_t count = std::min(static_cast<std::size_t>(arm.batch), work.size() - i);
      if (!decode_together(decoder, std::span(work).subspan(i, count), end_ids, interrupted, result,
                           digest)) {
        return {};
      }
    }
    result.environment = sampler.end_slot();
    result.times = decoder.times();
    result.tokens_sha256 = digest.finish_hex();
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<WarmUp> warm_up(Target& target, const std::vector<Arm>& arms,
                            const std::vector<WorkItem>& work, WarmUpRule rule,
                            const std::function<bool()>& interrupted) {
  ASDBENCH_CHECK(!work.empty(), "fixed work has prompts");
  const std::vector<TokenId> end_ids = target.info().end_ids;
  std::vector<WarmUp> results;
  for (const Arm& arm : arms) {
    Decoder decoder(target, *arm.drafter, *arm.verifier, options_for(arm, work));
    WarmUp result;
    std::vector<double> times;  // ns a token
    while (result.requests < rule.least || (!result.stable && result.requests < rule.most)) {
      const std::size_t item = static_cast<std::size_t>(result.requests) % work.size();
      SlotResult uncounted;
      Sha256 digest;
      if (!decode_together(decoder, std::span(work).subspan(item, 1), end_ids, interrupted,
                           uncounted, digest)) {
        return results;
      }
      times.push_back(static_cast<double>(uncounted.decode_ns) /
                      static_cast<double>(uncounted.tokens));
      ++result.requests;
      result.stable = steady(times);
    }
    results.push_back(result);
  }
  return results;
}

double group_log_ratio(const std::vector<SlotResult>& slots, std::size_t arm, std::size_t base) {
  double difference = 0;
  for (const SlotResult& slot : slots) {
    const double log_time = std::log(static_cast<double>(slot.decode_ns));
    if (slot.arm == base) difference += log_time / 2;
    if (slot.arm == arm) difference -= log_time / 2;
  }
  return difference;
}

}  // namespace asdbench
