#include "checkpoints/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>

#include "checkpoints/safetensors_header.h"
#include "checkpoints/safetensors_stream.h"

namespace tupelo {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

// Any other byte in a bool is undefined behaviour for whoever reads it.
void check_bools(const at::Tensor& tensor, const std::string& name, const std::string& file) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  if (std::any_of(bytes, bytes + tensor.nbytes(), [](unsigned char byte) { return byte > 1; })) {
    throw CorruptCheckpoint("tensor '" + name + "' in '" + file +
                            "' is BOOL but holds a byte other than 0 and 1");
  }
}

at::Tensor read_tensor(InputFile& file, const SafetensorsEntry& entry) {
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(entry.dtype));
  file.read(tensor.mutable_data_ptr(), tensor.nbytes());
  if (entry.dtype == at::kBool) {
    check_bools(tensor, entry.name, file.file().string());
  }
  return tensor;
}

// Removes a file unless told that it became what it should.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  void rename_to(const std::filesystem::path& target) {
    rename_path(path_, target);
    kept_ = true;
  }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

std::filesystem::path folder_containing(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

std::filesystem::path hidden_neighbour(const std::filesystem::path& file) {
  std::string name = ".";
  name += file.filename().string();
  return folder_containing(file) / (name + ".partial-" + random_suffix());
}

}  // namespace

void write_safetensors_to(OutputFile& file, const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata) {
  const std::string header = format_safetensors_header(tensors, metadata);
  const std::uint64_t header_bytes = header.size();
  file.write(&header_bytes, sizeof(header_bytes));
  file.write(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor stored = tensor.detach().to(at::kCPU).contiguous();
    file.write(stored.const_data_ptr(), stored.nbytes());
  }
}

SafetensorsFile read_safetensors_from(InputFile& file) {
  const std::string name = file.file().string();
  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof(header_bytes)) {
    throw CorruptCheckpoint("'" + name + "' is too short for a safetensors file");
  }
  file.read(&header_bytes, sizeof(header_bytes));
  const std::uint64_t after_length = file.size() - sizeof(header_bytes);
  if (header_bytes > kMaximumHeaderBytes || header_bytes > after_length) {
    throw CorruptCheckpoint("'" + name + "' claims a header of " + std::to_string(header_bytes) +
                            " bytes; valid is at most 16 MB and what the file holds");
  }
  std::string text(header_bytes, '\0');
  file.read(text.data(), text.size());
  SafetensorsHeader header = parse_safetensors_header(text, after_length - header_bytes, name);

  SafetensorsFile content;
  content.metadata = std::move(header.metadata);
  for (const SafetensorsEntry& entry : header.entries) {
    content.tensors[entry.name] = read_tensor(file, entry);
  }
  return content;
}

void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  TemporaryFile temporary(hidden_neighbour(file));
  OutputFile output(temporary.path(), 0666, Hashing::kOff);
  write_safetensors_to(output, tensors, metadata);
  output.commit();
  temporary.rename_to(file);
  sync_folder(folder_containing(file));
}

SafetensorsFile read_safetensors(const std::filesystem::path& file) {
  InputFile input(file, InputFile::Links::kFollow, Hashing::kOff);
  return read_safetensors_from(input);
}

}  // namespace tupelo
