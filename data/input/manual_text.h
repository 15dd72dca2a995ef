// What a manual page says: a reader for the part of roff that man(7) and mdoc(7) pages use.
#pragma once

#include <string>
#include <string_view>

namespace tupelo {

// The page's text: headings and paragraphs a line each, unfilled text (.nf, .EX, .Bd) as it is. All
// before the first .TH, .Dd, .SH or .Sh is taken for definitions and left out. Of requests, those
// of man and mdoc that hold text give it; definitions (.de .ds .ig), equations, the other branch of
// conditionals (.if t, .ie t and what is neither t nor n) and all unknown requests are left out.
// Escapes give their character (\(em, \[u4E2D], \N'65', \-) or, for fonts, sizes, motions,
// registers and the like, nothing. A page that only includes another (.so) has no text. `page` is
// valid UTF-8. Throws CorpusError, which names no place, when there is no such heading at all.
std::string text_of_manual(std::string_view page);

}  // namespace tupelo
