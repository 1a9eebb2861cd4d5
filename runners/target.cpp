// What a target without hidden states says when it is asked for them.
#include "runners/target.h"

#include "eval/core/error.h"

namespace asdbench {

void Target::listen(const HiddenSelection& selection, HiddenListener* /*listener*/) {
  if (selection.empty()) return;
  throw ConfigError("target " + info().name +
                    " has no hidden states, which this drafter reads\n  use a model's file or "
                    "folder as the target, or the drafter ngram");
}

}  // namespace asdbench
