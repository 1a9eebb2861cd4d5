// Proposes nothing: plain decoding in the same loop.
#include "runners/drafter.h"

namespace asdbench {
namespace {

class None final : public Drafter {
 public:
  DrafterInfo info() const override { return {.name = "none", .sha256 = ""}; }

 protected:
  using Drafter::propose;
  Draft propose(const RequestView&, DraftLimits) override { return Draft::none(); }
};

}  // namespace

std::unique_ptr<Drafter> make_none(const Params&, const DrafterContext&) {
  return std::make_unique<None>();
}

}  // namespace asdbench
