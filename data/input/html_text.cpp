#include "data/input/html_text.h"

#include <libxml/HTMLparser.h>
#include <libxml/parserInternals.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <new>

#include "data/errors.h"
#include "data/input/text_lines.h"

namespace tupelo {
namespace {

// Deeper nesting is an attack on the parser, which searches its open elements at every end tag.
constexpr int kDeepest = 2000;

constexpr auto kSilent = std::to_array<std::string_view>(
    {"applet", "audio",    "button",   "canvas",   "datalist", "iframe", "map",
     "nav",    "noframes", "noscript", "object",   "rp",       "rt",     "script",
     "select", "style",    "svg",      "template", "textarea", "video"});
constexpr auto kBlocks = std::to_array<std::string_view>(
    {"address", "article",  "aside",      "blockquote", "body",   "br",    "caption",
     "center",  "dd",       "details",    "dialog",     "dir",    "div",   "dl",
     "dt",      "fieldset", "figcaption", "figure",     "footer", "form",  "frameset",
     "h1",      "h2",       "h3",         "h4",         "h5",     "h6",    "head",
     "header",  "hgroup",   "hr",         "html",       "legend", "li",    "main",
     "menu",    "ol",       "optgroup",   "option",     "p",      "pre",   "section",
     "summary", "table",    "tbody",      "tfoot",      "thead",  "title", "tr",
     "ul"});

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

std::string_view view(const xmlChar* text) { return reinterpret_cast<const char*>(text); }

// Listens to the parser.
struct Page {
  htmlParserCtxtPtr parser = nullptr;
  TextLines lines;
  int depth = 0, silent = 0, preformatted = 0;
  bool too_deep = false, out_of_memory = false;

  void start(std::string_view name) {
    if (++depth > kDeepest) {
      too_deep = true;
      xmlStopParser(parser);
    }
    silent += is_one_of(kSilent, name);
    preformatted += name == "pre";
    separate(name);
  }
  void end(std::string_view name) {
    --depth;
    silent -= is_one_of(kSilent, name);
    preformatted -= name == "pre";
    separate(name);
  }
  void say(std::string_view text) {
    if (silent > 0) return;
    if (preformatted > 0) {
      lines.append_preformatted(text);
    } else {
      lines.append(text);
    }
  }

 private:
  void separate(std::string_view name) {
    if (silent > 0) return;
    if (is_one_of(kBlocks, name)) {
      lines.end_line();
    } else if (name == "td" || name == "th") {
      lines.append(" ");
    }
  }
};

// Exceptions must not cross the parser, which is C.
template <typename Action>
void guarded(void* page, Action action) {
  auto& listener = *static_cast<Page*>(page);
  try {
    action(listener);
  } catch (...) {
    listener.out_of_memory = true;
    xmlStopParser(listener.parser);
  }
}

void on_start(void* page, const xmlChar* name, const xmlChar**) {
  guarded(page, [&](Page& listener) { listener.start(view(name)); });
}
void on_end(void* page, const xmlChar* name) {
  guarded(page, [&](Page& listener) { listener.end(view(name)); });
}
void on_text(void* page, const xmlChar* text, int bytes) {
  guarded(page, [&](Page& listener) {
    listener.say({reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes)});
  });
}

struct FreeParser {
  void operator()(htmlParserCtxtPtr parser) const { htmlFreeParserCtxt(parser); }
};

void initialize_once() {
  static std::once_flag initialized;
  std::call_once(initialized, xmlInitParser);
}

}  // namespace

std::string text_of_html(std::string_view page) {
  initialize_once();
  const std::unique_ptr<htmlParserCtxt, FreeParser> parser(htmlNewParserCtxt());
  if (!parser || parser->sax == nullptr) throw std::bad_alloc();
  Page listener;
  listener.parser = parser.get();
  xmlSAXHandler& sax = *parser->sax;
  sax = {};
  sax.initialized = 1;
  sax.startElement = on_start;
  sax.endElement = on_end;
  sax.characters = sax.ignorableWhitespace = sax.cdataBlock = on_text;
  parser->userData = &listener;
  htmlCtxtReadMemory(parser.get(), page.data(), static_cast<int>(page.size()), nullptr, "UTF-8",
                     HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                         HTML_PARSE_NONET | HTML_PARSE_IGNORE_ENC | HTML_PARSE_NODEFDTD);
  if (listener.out_of_memory) throw std::bad_alloc();
  if (listener.too_deep) {
    throw CorpusError("has elements nested deeper than " + std::to_string(kDeepest));
  }
  return listener.lines.take();
}

}  // namespace tupelo
