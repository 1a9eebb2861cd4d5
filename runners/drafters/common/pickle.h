// Tensors of a pickled file, read by libtorch.
#pragma once

#include <filesystem>

#include "runners/checkpoint/drafter_checkpoint.h"

namespace asdbench {

/// The tensors of a dictionary that torch.save wrote as a zip file. Nothing is executed: names of
/// classes other than those of tensors and dictionaries are refused. ModelError.
FileTensors read_pickle(const std::filesystem::path& file);

}  // namespace asdbench
