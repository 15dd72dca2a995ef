// What a page of HTML says.
#pragma once

#include <string>
#include <string_view>

namespace tupelo {

// The page's text, its title first; block elements and <br> end lines. Left out: scripts, styles,
// navigation, forms' fields, pronunciation above characters (<rt>), embedded things. Broken markup
// is read as browsers do, as far as libxml2 knows. Reads nothing but `page`, which is valid UTF-8
// whatever it says about itself. Throws CorpusError, which names no place, when elements are
// nested deeper than any page for people. Any thread may call it.
std::string text_of_html(std::string_view page);

}  // namespace tupelo
