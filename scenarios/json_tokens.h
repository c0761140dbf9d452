// Where the token stands that the JSON library's parser has just read, and what it says if there is none.
//
// Internal to this layer. The parser tells the end of each token; the start is found by going back, which is
// unambiguous: a string starts at the nearest quote that no odd run of backslashes precedes. In all of these, `read`
// is the number of bytes of `text` that the parser has read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace vcpusim {

// REQUIRES that the last token is a string.
std::size_t string_start(std::string_view text, std::size_t read);

// First and one past the last byte. REQUIRES that the last token is a number.
std::pair<std::size_t, std::size_t> number_range(std::string_view text, std::size_t read);

// Where an error is that the parser reports as `what`.
std::size_t syntax_error_offset(std::string_view text, std::size_t read, std::string_view what);

// The parser's text without its own place and without the text it read, which may be long or no UTF-8.
std::string syntax_error_reason(std::string_view what);

}  // namespace vcpusim
