#include "data/cleaning/cleaning_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tupelo {
namespace {

using Json = nlohmann::ordered_json;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\n':
        result += " ⏎ ";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
    }
  }
  return result;
}

// 1234567 -> "1,234,567"
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  char text[32];
  const double share = whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  std::snprintf(text, sizeof text, "%.2f %%", share * 100);
  return text;
}

std::string cell(const std::string& text) {
  return std::string("<td class=n>").append(text).append("</td>");
}

void append_rule(const RuleReport& rule, const std::vector<TextSource>& sources,
                 std::uint64_t all_bytes, std::string& page) {
  page += "<tr><th>" + escaped(rule.name) + "</th><td>" + escaped(rule.what) + "</td>";
  page += cell(grouped(rule.documents)) + cell(grouped(rule.lines)) + cell(grouped(rule.bytes)) +
          cell(percent(rule.bytes, all_bytes)) + "</tr>\n";
  for (const CleaningExample& example : rule.examples) {
    page += "<tr class=e><td></td><td colspan=5><code>" +
            escaped(text_place(example.place, sources)) + "</code> " + escaped(example.text) +
            "</td></tr>\n";
  }
}

constexpr const char* kStyle =
    "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.3em .6em;border-top:1px solid #ccc}"
    ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    ".e td{border-top:none;color:#555;font-size:13px;overflow-wrap:anywhere}code{color:#06c}";

}  // namespace

std::string format_report_json(const CleaningReport& report,
                               const std::vector<TextSource>& sources) {
  Json rules = Json::array();
  for (const RuleReport& rule : report.rules) {
    Json examples = Json::array();
    for (const CleaningExample& example : rule.examples) {
      examples.push_back({{"place", text_place(example.place, sources)}, {"text", example.text}});
    }
    rules.push_back({{"name", rule.name},
                     {"what", rule.what},
                     {"documents", rule.documents},
                     {"lines", rule.lines},
                     {"bytes", rule.bytes},
                     {"examples", examples}});
  }
  const Json json = {
      {"before", {{"documents", report.documents_before}, {"bytes", report.bytes_before}}},
      {"after", {{"documents", report.documents_after}, {"bytes", report.bytes_after}}},
      {"rules", rules}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string format_report_html(const CleaningReport& report,
                               const std::vector<TextSource>& sources) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>What cleaning did</title><style>";
  page += kStyle;
  page += "</style>\n<h1>What cleaning did</h1>\n<p>Of ";
  page += grouped(report.documents_before) + " documents with " + grouped(report.bytes_before) +
          " bytes of text, " + grouped(report.documents_after) + " documents with " +
          grouped(report.bytes_after) + " bytes stayed (" +
          percent(report.bytes_after, report.bytes_before) + ").</p>\n";
  page +=
      "<table><tr><th>rule</th><th>what it looks for</th><th class=n>documents dropped</th>"
      "<th class=n>lines dropped or changed</th><th class=n>bytes taken away</th>"
      "<th class=n>share of bytes</th></tr>\n";
  for (const RuleReport& rule : report.rules) append_rule(rule, sources, report.bytes_before, page);
  page += "</table>\n";
  return page;
}

}  // namespace tupelo
