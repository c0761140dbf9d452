#include "scenarios/json_tokens.h"

namespace vcpusim {

std::size_t string_start(std::string_view text, std::size_t read) {
  std::size_t at = read - 1;  // the closing quote
  for (;;) {
    at = text.rfind('"', at - 1);
    std::size_t backslashes = 0;
    while (backslashes < at && text[at - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return at;
  }
}

// A number ends where the next character is none of it; the parser has usually read that one already.
std::pair<std::size_t, std::size_t> number_range(std::string_view text, std::size_t read) {
  constexpr std::string_view kNumber = "0123456789+-.eE";
  std::size_t end = read;
  if (kNumber.find(text[end - 1]) == std::string_view::npos) --end;
  std::size_t start = end;
  while (start > 0 && kNumber.find(text[start - 1]) != std::string_view::npos) --start;
  return {start, end};
}

std::size_t syntax_error_offset(std::string_view text, std::size_t read, std::string_view what) {
  const auto says = [&](std::string_view phrase) { return what.find(phrase) != std::string_view::npos; };
  if (says("unexpected end of input")) return text.size();
  if (says("unexpected string literal")) return string_start(text, read);
  if (says("unexpected number literal") || says("number overflow")) return number_range(text, read).first;
  return read > 0 ? read - 1 : 0;
}

// "... at line 1, column 2: syntax error while parsing value - unexpected ...; last read: '...'; expected ..."
std::string syntax_error_reason(std::string_view what) {
  if (what.find("number overflow") != std::string_view::npos) {
    return "not JSON that a computer can hold: a number beyond the largest double";
  }
  const std::size_t dash = what.find(" - ");
  std::string cause(dash == std::string_view::npos ? what : what.substr(dash + 3));
  if (const std::size_t last_read = cause.find("; last read: "); last_read != std::string::npos) {
    const std::size_t after = cause.find("'; expected ", last_read);
    cause.erase(last_read, after == std::string::npos ? after : after + 1 - last_read);
  }
  return "not JSON: " + cause;
}

}  // namespace vcpusim
