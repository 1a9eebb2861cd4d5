// Options of the rules that judge one position at a time.
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {

double required(const Params& params, const char* key, double minimum, double maximum) {
  if (!params.has(key)) return params.at_least(key, minimum);  // says what is missing
  return params.number(key, minimum, minimum, maximum);
}

}  // namespace asdbench
