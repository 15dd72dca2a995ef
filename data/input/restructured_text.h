// What a reStructuredText file says.
#pragma once

#include <string>
#include <string_view>

namespace tupelo {

// The file's text: titles, paragraphs, list items and rows of tables a line each. Left out: lines
// under titles and around tables, comments, targets, literal blocks and doctests, and every
// directive but those whose body is text for readers (note, warning, topic, versionchanged, ...).
// Inline markup gives its text: ``x``, *x*, **x**, `x <y>`_, :role:`x`. `file` is
// valid UTF-8. A subset of docutils' markup, by lines: what it does not know stays as it is.
std::string text_of_restructured(std::string_view file);

}  // namespace tupelo
