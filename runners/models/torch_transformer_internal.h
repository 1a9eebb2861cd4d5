// What a torch target lends to drafters on the same device.
#pragma once

#include <ATen/ATen.h>

#include "runners/models/engine.h"

namespace asdbench {

class TorchTarget : public CheckpointTarget {
 public:
  virtual at::Device device() const = 0;
  virtual at::Tensor embedding() const = 0;  // [V, H]
  virtual at::Tensor head() const = 0;       // [H, V]
};

}  // namespace asdbench
