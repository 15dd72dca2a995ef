#include "launcher/probe_report.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "launcher/console.h"
#include "launcher/run_folder.h"
#include "launcher/svg_figures.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kMostCells = 64;
const char* const kData = "probe.json";

const char* const kStyle =
    "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;font-size:13px}"
    "td,th{padding:2px 9px;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child,.name{text-align:left}"
    ".maps{display:flex;flex-wrap:wrap;gap:12px}.maps figure{margin:0;width:150px}"
    ".map{width:150px;height:150px;border:1px solid #ccc}.plot{width:100%;max-width:620px}"
    "figcaption{font-size:12px}.key{margin-right:1em;font-size:12px}";

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double largest_of(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

std::string number(double value) { return std::isfinite(value) ? significant(value, 3) : "–"; }

std::string cell(const std::string& text) { return "<td>" + escaped_text(text) + "</td>"; }

std::string name_cell(const std::string& text) {
  return "<td class=\"name\">" + escaped_text(text) + "</td>";
}

// [N,X,Y] or [X,Y] as numbers of the host.
Matrix matrix_of(const torch::Tensor& tensor) {
  const torch::Tensor host = tensor.detach().to(torch::kCPU, torch::kDouble).contiguous();
  const auto* values = host.data_ptr<double>();
  return {host.size(0), host.size(1), {values, values + host.numel()}};
}

// [N,T,T] -> [N,t,t], t at most kMostCells: means of blocks.
torch::Tensor downsampled(const torch::Tensor& matrices) {
  if (matrices.size(-1) <= kMostCells) return matrices;
  return at::adaptive_avg_pool2d(matrices.to(torch::kDouble).unsqueeze(0),
                                 {kMostCells, kMostCells})[0];
}

std::string layer_table(const HeldOutProbe& probe) {
  std::ostringstream html;
  html << "<table><tr><th>layer</th><th class=\"name\">encoding</th><th>entropy</th><th>of ln "
          "n</th>";
  for (const char* path : kScorePathNames) {
    html << "<th>" << path << " mean</th><th>deviation</th><th>max |.|</th>";
  }
  html << "</tr>\n";
  for (std::size_t i = 0; i < probe.layers.size(); ++i) {
    const LayerProbe& layer = probe.layers[i];
    html << "<tr>" << cell(std::to_string(i)) << name_cell(probe.encodings[i])
         << cell(number(mean_of(layer.entropy)))
         << cell(number(100 * mean_of(layer.relative_entropy)) + "%");
    for (const PathStatistics& path : layer.paths) {
      html << cell(number(mean_of(path.mean))) << cell(number(std::sqrt(mean_of(path.variance))))
           << cell(number(largest_of(path.largest)));
    }
    html << "</tr>\n";
  }
  html << "</table>\n";
  return html.str();
}

std::string head_table(const LayerProbe& layer) {
  std::ostringstream html;
  html << "<table><tr><th>head</th><th>entropy</th>";
  for (const char* path : kScorePathNames) {
    html << "<th>" << path << " mean</th><th>variance</th><th>max |.|</th>";
  }
  html << "</tr>\n";
  for (std::size_t head = 0; head < layer.entropy.size(); ++head) {
    html << "<tr>" << cell(std::to_string(head)) << cell(number(layer.entropy[head]));
    for (const PathStatistics& path : layer.paths) {
      html << cell(number(path.mean[head])) << cell(number(path.variance[head]))
           << cell(number(path.largest[head]));
    }
    html << "</tr>\n";
  }
  html << "</table>\n";
  return html.str();
}

std::string heat_maps(const torch::Tensor& correlation) {
  const torch::Tensor maps = downsampled(correlation);
  const torch::Tensor finite = at::nan_to_num(maps.to(torch::kDouble), 0.0, 0.0, 0.0);
  const double largest = std::max(finite.abs().max().item<double>(), 1e-12);
  std::ostringstream html;
  html << "<p>Correlation of positions: query downwards, key to the right; full colour at ±"
       << number(largest) << ".</p>\n<div class=\"maps\">\n";
  for (std::int64_t head = 0; head < maps.size(0); ++head) {
    html << "<figure>" << heat_map(matrix_of(maps[head]), largest) << "<figcaption>head " << head
         << "</figcaption></figure>\n";
  }
  html << "</div>\n";
  return html.str();
}

std::string range_text(const BiasRange& range) {
  return number(range.least) + " to " + number(range.most);
}

std::string distance_plot(const GroupProbe& group, std::int64_t longest_sequence) {
  const Matrix lines = matrix_of(group.picture.distance_bias);
  std::ostringstream html;
  html << "<p>Bias by distance (key - query): " << range_text(group.to_left) << " to the left, "
       << range_text(group.to_right) << " to the right. The rows seen cover distances up to "
       << longest_sequence - 1 << " in both directions.</p>\n"
       << line_plot(lines, -(lines.columns - 1) / 2) << "<p>";
  for (std::int64_t head = 0; head < lines.rows; ++head) {
    html << "<span class=\"key\" style=\"color:" << line_color(static_cast<std::size_t>(head))
         << "\">head " << head << "</span>";
  }
  html << "</p>\n";
  return html.str();
}

std::string gradient_table(const std::map<std::string, double>& norms) {
  if (norms.empty()) return "";
  std::string html =
      "<h2>Gradients of position parameters</h2>\n<table><tr><th>of</th><th>norm</th></tr>\n";
  for (const auto& [owner, norm] : norms) {
    const bool group = owner.find_first_not_of("0123456789") == std::string::npos;
    html += "<tr>" + name_cell((group ? "group " : "") + owner) + cell(number(norm)) + "</tr>\n";
  }
  return html + "</table>\n";
}

std::string group_section(std::size_t index, const GroupProbe& group, std::int64_t longest) {
  std::string html = "<h2>Group " + std::to_string(index) + ": " + escaped_text(group.encoding) +
                     "</h2>\n<p>Layers";
  for (const std::int64_t layer : group.layers) html.append(" ").append(std::to_string(layer));
  html += "</p>\n";
  if (group.picture.correlation.defined()) html += heat_maps(group.picture.correlation);
  if (group.picture.distance_bias.defined()) html += distance_plot(group, longest);
  if (!group.picture.correlation.defined() && !group.picture.distance_bias.defined()) {
    html += "<p>No part of its scores is independent of the input.</p>\n";
  }
  return html;
}

fs::path full_path(const fs::path& given) {
  const fs::path path = fs::absolute(given).lexically_normal();
  return path.has_filename() ? path : path.parent_path();  // a slash at the end
}

// `path` or its nearest ancestor that is there.
fs::path nearest_existing(fs::path path) {
  std::error_code ignored;
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

void write_both(const fs::path& folder, const ProbeReport& report) {
  write_atomically(folder / kData, probe_report_json(report).dump(1) + "\n");
  write_atomically(folder / "index.html", probe_page(report));
}

// By trying, since root may write anywhere and is refused all the same by file systems such as
// /proc. Throws std::system_error.
void require_writable(const fs::path& folder) {
  const std::string trial = (folder / (".writable-" + std::to_string(getpid()))).string();
  if (mkdir(trial.c_str(), 0700) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot write to " + folder.string());
  }
  rmdir(trial.c_str());
}

}  // namespace

std::string probe_page(const ProbeReport& report) {
  const HeldOutProbe& probe = report.probe;
  std::ostringstream html;
  html << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Attention at "
          "step "
       << report.step << "</title>\n<style>" << kStyle << "</style></head><body>\n"
       << "<h1>Attention at step " << grouped(report.step) << "</h1>\n<p>"
       << escaped_text(report.checkpoint) << ", " << grouped(probe.rows) << " held-out rows, "
       << grouped(probe.tokens) << " tokens. Parts of the scores: content (c) or position (p) of "
       << "the query with that of the key, and the bias of the distance; over pairs of real "
       << "tokens.</p>\n"
       << "<h2>Layers</h2>\n<p>Means over heads; the largest over heads.</p>\n"
       << layer_table(probe);
  for (std::size_t i = 0; i < probe.layers.size(); ++i) {
    html << "<details><summary>Layer " << i << " by head</summary>" << head_table(probe.layers[i])
         << "</details>\n";
  }
  for (std::size_t i = 0; i < probe.groups.size(); ++i) {
    html << group_section(i, probe.groups[i], probe.longest_sequence);
  }
  html << gradient_table(report.gradient_norms) << "</body></html>\n";
  return html.str();
}

nlohmann::ordered_json probe_report_json(const ProbeReport& report) {
  nlohmann::ordered_json object = {{"checkpoint", report.checkpoint}, {"step", report.step}};
  object.update(probe_json(report.probe));
  object["gradient_norms"] = report.gradient_norms;
  for (std::size_t i = 0; i < report.probe.groups.size(); ++i) {
    const torch::Tensor& line = report.probe.groups[i].picture.distance_bias;
    if (!line.defined()) continue;
    const Matrix lines = matrix_of(line);
    nlohmann::ordered_json heads = nlohmann::ordered_json::array();
    for (auto first = lines.values.begin(); first != lines.values.end(); first += lines.columns) {
      heads.push_back(std::vector<double>(first, first + lines.columns));
    }
    object["groups"][i]["bias_by_distance"] = heads;
  }
  return object;
}

void check_probe_folder(const fs::path& folder) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("--probe: " + folder.string() + " " + what);
  };
  const fs::path existing = nearest_existing(full_path(folder));
  if (!fs::is_directory(existing)) {
    refuse(existing == full_path(folder)
               ? "is not a folder"
               : "cannot be made, " + existing.string() + " is not a folder");
  }
  require_writable(existing);
  if (existing == full_path(folder) && !fs::is_empty(existing) && !fs::exists(existing / kData)) {
    refuse("holds other files; name an empty folder, one of an earlier probe, or a new one");
  }
}

void write_probe_report(const fs::path& wanted, const ProbeReport& report) {
  const fs::path folder = full_path(wanted);
  if (fs::exists(folder)) {
    write_both(folder, report);
    return;
  }
  fs::create_directories(folder.parent_path());
  const fs::path temporary = folder.string() + ".new-" + std::to_string(getpid());
  try {
    fs::create_directory(temporary);
    write_both(temporary, report);
    fs::rename(temporary, folder);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
}

}  // namespace tupelo
