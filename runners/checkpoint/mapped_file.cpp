// Read-only memory mappings of regular files.
#include "runners/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "eval/core/error.h"

namespace asdbench {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw ModelError(ModelFault::kMissingFile,
                   fmt::format("{}: cannot be read: {}; give the path of a readable regular file",
                               path.string(), why));
}

std::string system_text(int error) { return std::system_category().message(error); }

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, system_text(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail(path, system_text(errno));
  if (!S_ISREG(info.st_mode)) fail(path, "it is not a regular file");
  if (info.st_size == 0) return;  // mmap refuses an empty range
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) fail(path, system_text(errno));
  data_ = static_cast<const std::byte*>(data);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace asdbench
