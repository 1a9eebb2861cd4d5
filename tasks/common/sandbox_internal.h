// The Python program that runs inside the sandbox.
#pragma once

#include <string_view>

namespace asdbench {

/// Text of sandbox_driver.py; the build copies it into the library.
extern const std::string_view kSandboxDriver;

}  // namespace asdbench
