#include "checkpoints/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <tuple>

#include "checkpoints/strict_json.h"

namespace tupelo {
namespace {

constexpr char kMetadataKey[] = "__metadata__";
constexpr std::size_t kMaximumDimensions = 64;  // what ATen's loops take

struct Dtype {
  const char* name;
  torch::ScalarType type;
};

constexpr std::array<Dtype, 8> kDtypes = {{{"F64", torch::kFloat64},
                                           {"F32", torch::kFloat32},
                                           {"BF16", torch::kBFloat16},
                                           {"F16", torch::kFloat16},
                                           {"I64", torch::kInt64},
                                           {"I32", torch::kInt32},
                                           {"U8", torch::kUInt8},
                                           {"BOOL", torch::kBool}}};

const char* dtype_name(torch::ScalarType type, const std::string& tensor) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.type == type) return dtype.name;
  }
  throw std::invalid_argument("tensor '" + tensor + "' has dtype " + c10::toString(type) +
                              ", but a safetensors file of ours holds only F64 F32 BF16 F16 I64 "
                              "I32 U8 BOOL");
}

// The checks of one header; every failure names the file.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  SafetensorsEntry entry(const std::string& name, const nlohmann::json& value) const {
    require(value.is_object() && value.size() == 3 && value.contains("dtype") &&
                value.contains("shape") && value.contains("data_offsets"),
            name, "must have exactly the keys dtype, shape and data_offsets");
    SafetensorsEntry entry;
    entry.name = name;
    entry.dtype = dtype(name, value["dtype"]);
    entry.shape = shape(name, value["shape"]);
    std::tie(entry.begin, entry.end) = offsets(name, value["data_offsets"]);
    require(entry.end - entry.begin == byte_count(entry), name,
            "has data offsets that do not fit its shape and dtype");
    return entry;
  }

  std::map<std::string, std::string> metadata(const nlohmann::json& value) const {
    require(value.is_object(), kMetadataKey, "must be an object");
    std::map<std::string, std::string> metadata;
    for (const auto& [key, text] : value.items()) {
      require(text.is_string(), kMetadataKey, "must hold strings only");
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  void check_tiling(const std::vector<SafetensorsEntry>& sorted, std::uint64_t data_bytes) const {
    std::uint64_t end = 0;
    for (const SafetensorsEntry& entry : sorted) {
      require(entry.begin >= end, entry.name, "overlaps the tensor before it");
      require(entry.begin == end, entry.name, "begins after a hole in the data");
      end = entry.end;
    }
    if (end != data_bytes) {
      throw CorruptCheckpoint("'" + file_ + "' has " + std::to_string(data_bytes) +
                              " bytes of data, but its header describes " + std::to_string(end));
    }
  }

 private:
  void require(bool holds, const std::string& key, const char* what) const {
    if (!holds) {
      throw CorruptCheckpoint("header of '" + file_ + "': '" + key + "' " + what);
    }
  }

  torch::ScalarType dtype(const std::string& name, const nlohmann::json& value) const {
    require(value.is_string(), name, "has a dtype that is not a string");
    for (const Dtype& candidate : kDtypes) {
      if (value.get_ref<const std::string&>() == candidate.name) return candidate.type;
    }
    require(false, name, "has a dtype other than F64 F32 BF16 F16 I64 I32 U8 BOOL");
    return torch::kUInt8;
  }

  std::vector<std::int64_t> shape(const std::string& name, const nlohmann::json& value) const {
    require(value.is_array() && value.size() <= kMaximumDimensions, name,
            "has a shape that is not an array of at most 64 sizes");
    std::vector<std::int64_t> shape;
    // Also sizes beside a 0 must multiply to something that fits, since ATen computes strides of
    // them.
    std::int64_t product = 1;
    for (const nlohmann::json& size : value) {
      require(size.is_number_unsigned() && size.get<std::uint64_t>() <= INT64_MAX, name,
              "has a size that is not a whole number");
      shape.push_back(size.get<std::int64_t>());
      require(!__builtin_mul_overflow(product, std::max<std::int64_t>(shape.back(), 1), &product),
              name, "has a shape whose product overflows");
    }
    return shape;
  }

  std::pair<std::uint64_t, std::uint64_t> offsets(const std::string& name,
                                                  const nlohmann::json& value) const {
    require(value.is_array() && value.size() == 2 && value[0].is_number_unsigned() &&
                value[1].is_number_unsigned() &&
                value[0].get<std::uint64_t>() <= value[1].get<std::uint64_t>(),
            name, "has data_offsets that are not [begin, end] with begin <= end");
    return {value[0].get<std::uint64_t>(), value[1].get<std::uint64_t>()};
  }

  std::uint64_t byte_count(const SafetensorsEntry& entry) const {
    std::uint64_t bytes = c10::elementSize(entry.dtype);
    for (const std::int64_t size : entry.shape) {
      require(!__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes), entry.name,
              "has a shape whose product overflows");
    }
    return bytes;
  }

  const std::string& file_;
};

}  // namespace

std::string format_safetensors_header(const NamedTensors& tensors,
                                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    header[kMetadataKey] = metadata;
  }
  // ordered_json looks keys up one by one, so the set finds duplicates and the end takes the entry.
  std::set<std::string> names = {kMetadataKey};
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) {
      throw std::invalid_argument("tensor name '" + name + "' is " +
                                  (name == kMetadataKey ? "reserved" : "used twice"));
    }
    if (!tensor.defined()) {
      throw std::invalid_argument("tensor '" + name + "' is undefined");
    }
    const std::uint64_t end = offset + tensor.nbytes();
    nlohmann::ordered_json entry = {{"dtype", dtype_name(tensor.scalar_type(), name)},
                                    {"shape", tensor.sizes().vec()},
                                    {"data_offsets", {offset, end}}};
    header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(name, std::move(entry));
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(std::string("a tensor name or metadata text is not UTF-8: ") +
                                error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaximumHeaderBytes) {
    throw std::invalid_argument("the header of a safetensors file would exceed 16 MB");
  }
  return text;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& file) {
  const nlohmann::json json =
      parse_strict_json(text, JsonNumbers::kIntegersOnly, "header of '" + file + "'");
  const HeaderReader reader(file);
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      header.metadata = reader.metadata(value);
    } else {
      header.entries.push_back(reader.entry(name, value));
    }
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& left, const SafetensorsEntry& right) {
              return std::tie(left.begin, left.end, left.name) <
                     std::tie(right.begin, right.end, right.name);
            });
  reader.check_tiling(header.entries, data_bytes);
  return header;
}

}  // namespace tupelo
