#include <array>
#include <charconv>
#include <cmath>
#include <holdfast/metrics_text.hpp>

#include "base/names.hpp"

namespace holdfast {

namespace {

constexpr std::array<std::string_view, 4> type_names{"counter", "gauge", "histogram", "info"};

std::string_view suffix_of(metric_type type) noexcept {
  if (type == metric_type::counter) return "_total";
  return type == metric_type::info ? "_info" : "";
}

void append_escaped(std::string& to, std::string_view text, bool quotes) {
  for (const char c : as_utf8(text)) {
    if (c == '\\') {
      to += "\\\\";
    } else if (c == '\n') {
      to += "\\n";
    } else if (c == '"' && quotes) {
      to += "\\\"";
    } else {
      to += c;
    }
  }
}

std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::isnan(value)) return "NaN";
  std::array<char, 400> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  return {digits.data(), end.ptr};
}

// "1" and "1.0" would be two series.
std::string bound(std::chrono::nanoseconds at) {
  std::string text = number(std::chrono::duration<double>(at).count());
  return text.find('.') == text.npos ? text + ".0" : text;
}

}  // namespace

std::string_view content_type(metrics_format format) noexcept {
  return format == metrics_format::openmetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string as_utf8(std::string_view text) {
  if (base::is_utf8(text)) return std::string(text);
  std::string valid;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80)
      valid += "\xef\xbf\xbd";
    else
      valid += c;
  }
  return valid;
}

void metrics_text::family(std::string_view name, metric_type type, std::string_view help) {
  name_ = name;
  type_ = type;
  const bool open = format_ == metrics_format::openmetrics;
  const std::string shown = open ? name_ : name_ + std::string(suffix_of(type));
  const bool known = open || type != metric_type::info;  // the older format has no such type
  text_ += "# TYPE " + shown + ' ';
  text_ += known ? type_names[static_cast<std::size_t>(type)] : "gauge";
  text_ += '\n';
  if (open && name.ends_with("_seconds")) text_ += "# UNIT " + shown + " seconds\n";
  text_ += "# HELP " + shown + ' ';
  append_escaped(text_, help, open);
  text_ += '\n';
}

void metrics_text::line(std::string_view suffix, labels at, std::string_view le, double value) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  const auto label = [&](std::string_view key, std::string_view text) {
    text_ += before;
    text_ += key;
    text_ += "=\"";
    append_escaped(text_, text, true);
    text_ += '"';
    before = ',';
  };
  for (const auto& [key, text] : at) label(key, text);
  if (!le.empty()) label("le", le);
  if (before == ',') text_ += '}';
  text_ += ' ' + number(value) + '\n';
}

void metrics_text::sample(labels at, double value) { line(suffix_of(type_), at, {}, value); }

void metrics_text::histogram(labels at, std::span<const std::chrono::nanoseconds> bounds,
                             std::span<const std::uint64_t> counts, std::chrono::nanoseconds sum) {
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    so_far += counts[i];
    const std::string le = i < bounds.size() ? bound(bounds[i]) : "+Inf";
    line("_bucket", at, le, static_cast<double>(so_far));
  }
  line("_sum", at, {}, std::chrono::duration<double>(sum).count());
  line("_count", at, {}, static_cast<double>(so_far));
}

std::string metrics_text::finish() && {
  if (format_ == metrics_format::openmetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace holdfast
