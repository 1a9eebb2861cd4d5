// Any bytes are records of a campaign that replays, or are refused. Lines that are JSON objects are
// hashed into a chain, so that what lies behind the hashes is reached; the bytes themselves are
// also tried as they are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "eval/audit/campaign.h"

namespace asdbench {
namespace {

void try_input(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<RecordRow> raw, hashed;
  Chain chain;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    raw.push_back({static_cast<std::int64_t>(raw.size()), line, kChainStart, kChainStart});
    try {
      Json body = parse_json(line);
      if (!body.is_object()) continue;
      chain.push_back(next_record(chain, std::move(body)));
      hashed.push_back({static_cast<std::int64_t>(hashed.size()), canonical_json(chain.back().body),
                        chain.back().prev, chain.back().hash});
    } catch (const DataError&) {
      // no record
    }
  }
  for (const auto* rows : {&raw, &hashed}) {
    try {
      replay_chain(*rows, "fuzz");
    } catch (const Refused&) {
      // what a broken chain is to end in
    }
  }
}

}  // namespace
}  // namespace asdbench

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  asdbench::try_input(data, size);
  return 0;
}
