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

/// The work of one slot in the places of a batch: the next prompt starts as soon as one ends.
class Batch {
 public:
  Batch(Decoder& decoder, std::span<const WorkItem> items, std::span<const TokenId> end_ids,
        SlotResult& result)
      : decoder_(decoder),
        items_(items),
        end_ids_(end_ids),
        result_(result),
        places_(static_cast<std::size_t>(decoder.options().requests)) {
    live_.reserve(places_.size());
    result_.each.resize(items.size());
  }

  /// Adds what was counted to the result; false when interrupted, and then nothing of it may be
  /// used.
  bool run(const std::function<bool()>& interrupted) {
    bool stopped = interrupted();
    while (!stopped) {
      fill();
      if (live_.empty()) break;
      stopped = advance(interrupted);
      if (!stopped) settle();
    }
    for (Place& place : places_) {
      if (place.request) decoder_.finish(*place.request);
    }
    if (stopped) return false;
    Sha256 digest;
    for (const PromptResult& prompt : result_.each) digest.update(prompt.tokens_sha256);
    result_.tokens_sha256 = digest.finish_hex();
    return true;
  }

 private:
  struct Place {
    std::unique_ptr<Request> request;
    std::size_t item = 0;
  };

  /// Starts waiting prompts in empty places. A reply may end with its first token: then the next.
  void fill() {
    bool ended = true;
    while (ended && next_ < items_.size()) {
      for (std::size_t i = 0; i < places_.size() && next_ < items_.size(); ++i) {
        if (!places_[i].request) start(places_[i], i);
      }
      ended = std::any_of(live_.begin(), live_.end(),
                          [](const Request* request) { return request->finished(); });
      settle();
    }
  }

  void start(Place& place, std::size_t slot) {
    place.item = next_++;
    const WorkItem& item = items_[place.item];
    place.request = std::make_unique<Request>(
        item.sample_id, item.prompt,
        RequestLimits{.max_tokens = item.tokens + 1, .ignore_end_ids = !item.natural_end}, end_ids_,
        Rng());
    place.request->slot = static_cast<std::int32_t>(slot);
    decoder_.start(*place.request);
    live_.push_back(place.request.get());
  }

  /// Passes until a request ends: the timed stretch. True when interrupted.
  bool advance(const std::function<bool()>& interrupted) {
    const bool tail = live_.size() < places_.size();
    const std::int64_t tokens = tail ? live_tokens() : 0;
    bool stopped = false;
    const std::int64_t begin = now_ns();
    do {
      decoder_.pass(live_);
      stopped = interrupted();
    } while (!stopped && std::none_of(live_.begin(), live_.end(),
                                      [](const Request* request) { return request->finished(); }));
    const std::int64_t elapsed = now_ns() - begin;
    result_.decode_ns += elapsed;
    if (tail && places_.size() > 1) {
      result_.tail_ns += elapsed;
      result_.tail_tokens += live_tokens() - tokens;
    }
    share(elapsed);
    return stopped;
  }

  std::int64_t live_tokens() const {
    std::int64_t tokens = 0;
    for (const Request* request : live_) tokens += std::ssize(request->output());
    return tokens;
  }

  /// Splits a stretch among the requests that were decoded in it; the first gets the remainder.
  void share(std::int64_t elapsed) {
    const auto parts = std::ssize(live_);
    std::int64_t part = elapsed / parts + elapsed % parts;
    for (const Place& place : places_) {
      if (!place.request) continue;
      result_.each[place.item].decode_ns += part;
      part = elapsed / parts;
    }
  }

  /// Counts the requests that have ended and frees their places.
  void settle() {
    std::erase_if(live_, [](const Request* request) { return request->finished(); });
    for (Place& place : places_) {
      if (!place.request || !place.request->finished()) continue;
      decoder_.finish(*place.request);
      count(*place.request, place.item);
      place.request.reset();
    }
  }

  void count(const Request& request, std::size_t index) {
    const WorkItem& item = items_[index];
    const std::span<const TokenId> output = request.output();
    const auto expected = static_cast<std::size_t>(item.tokens) + 1;
    if (!request.error().empty() || (!item.natural_end && output.size() != expected)) {
      throw DataError(fmt::format(
          "fixed work: prompt {} gave {} tokens, {} expected{}{}\n  choose shorter prompts, fewer "
          "speed.tokens, or leave this prompt out",
          item.sample_id, output.size(), expected, request.error().empty() ? "" : ": ",
          request.error()));
    }
    PromptResult& prompt = result_.each[index];
    prompt.tokens = std::ssize(output) - 1;
    prompt.prefill_ns = request.prefill_ns;
    prompt.tokens_sha256 = sha256_tokens(output);
    result_.prompts += 1;
    result_.tokens += prompt.tokens;
    result_.prefill_ns += request.prefill_ns;
    result_.post_end_tokens += tokens_after_end(output, end_ids_);
    result_.passes += std::ssize(request.passes());
    for (const PassRecord& pass : request.passes()) {
      result_.drafted += pass.drafted;
      result_.accepted += pass.accepted;
    }
  }

  Decoder& decoder_;
  std::span<const WorkItem> items_;
  std::span<const TokenId> end_ids_;
  SlotResult& result_;
  std::vector<Place> places_;
  std::vector<Request*> live_;
  std::size_t next_ = 0;  // item
};

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

std::vector<SlotResult> run_slots(Target& target, const std::vector<Arm>& arms,
                                  const std::vector<WorkItem>& work,
                                  const std::vector<std::size_t>& order,
                                  const std::function<bool()>& interrupted) {
  const std::vector<TokenId> end_ids = target.info().end_ids;
  std::vector<SlotResult> results;
  EnvironmentSampler sampler(target.info().device.starts_with("cuda") ? std::make_unique<Nvml>()
                                                                      : nullptr);
  for (const std::size_t index : order) {
    const Arm& arm = arms[index];
    Decoder decoder(target, *arm.drafter, *arm.verifier, options_for(arm, work));
    SlotResult result{.arm = index, .slot = static_cast<std::int32_t>(results.size())};
    sampler.begin_slot();
    if (!Batch(decoder, work, end_ids, result).run(interrupted)) return {};
    result.environment = sampler.end_slot();
    result.times = decoder.times();
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<SlotResult> run_group(Target& target, const std::vector<Arm>& arms,
                                  const std::vector<WorkItem>& work, std::int64_t group,
                                  const std::function<bool()>& interrupted) {
  return run_slots(target, arms, work, slot_order(arms.size(), group), interrupted);
}

std::optional<SlotResult> decode_once(Target& target, const Arm& arm,
                                      const std::vector<WorkItem>& work,
                                      const std::function<bool()>& interrupted) {
  const std::vector<TokenId> end_ids = target.info().end_ids;
  Decoder decoder(target, *arm.drafter, *arm.verifier, options_for(arm, work));
  SlotResult result;
  if (!Batch(decoder, work, end_ids, result).run(interrupted)) return std::nullopt;
  result.times = decoder.times();
  return result;
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
    std::size_t next = 0;
    while (result.requests < rule.least || (!result.stable && result.requests < rule.most)) {
      std::vector<WorkItem> items;  // as many as the arm decodes together
      for (std::int32_t i = 0; i < arm.batch; ++i) items.push_back(work[next++ % work.size()]);
      SlotResult uncounted;
      if (!Batch(decoder, items, end_ids, uncounted).run(interrupted)) return results;
      times.push_back(static_cast<double>(uncounted.decode_ns) /
                      static_cast<double>(std::max<std::int64_t>(uncounted.tokens, 1)));
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
