#include "ir/trust/signed_file.hpp"

#include <cstring>

#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "ir/trust/text_lines.hpp"

namespace kiln {
namespace {

constexpr std::string_view domain = "Kiln signed file 1\n", label = "kiln-signature-1";

std::string text_of(const file_statement& s) {
  return std::string(label) + "\nname " + s.name + "\nversion " + std::to_string(s.version) + "\nbytes " +
         std::to_string(s.bytes) + "\nblake3 " + s.hash.hex() + "\n";
}

std::optional<content_hash> parse_hash(std::string_view digits) {
  const auto bytes = key_of_hex(digits);
  if (!bytes) return std::nullopt;
  return content_hash{*bytes};
}

// "LABEL VALUE", of which the value is returned.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') return std::nullopt;
  return line.substr(name.size() + 1);
}

}  // namespace

std::filesystem::path signature_file_of(const std::filesystem::path& file) { return file.string() + ".sig"; }

file_statement describe_file(const std::filesystem::path& file, std::uint64_t version) {
  const auto mapped = container::mapped_file::open(file);
  file_statement result{file.filename().string(), version, mapped->bytes().size(), blake3(mapped->bytes())};
  if (result.name.empty() || result.name.find('\n') != std::string::npos)
    throw error(error_kind::usage, file.string() + ": its name cannot be signed");
  return result;
}

std::string signed_statement(const file_statement& statement, const signing_key& key) {
  const std::string text = text_of(statement);
  return text + signature_line(domain, text, key);
}

signed_file read_statement(const std::string& text, const std::string& file) {
  auto damaged = [&](const char* what) { throw error(error_kind::corrupted, file + ": " + what); };
  signed_file result;
  const std::size_t end = text.find("\nsignature ");
  if (end == std::string::npos) damaged("is no signature of a file");
  const std::string statement = text.substr(0, end + 1);
  std::string_view rest = statement;
  auto field = [&](std::string_view name) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const auto value = value_of(line, name);
    if (!value) damaged("is no signature of a file");
    return *value;
  };
  if (!rest.starts_with(std::string(label) + "\n")) damaged("is no signature of a file, or one of a newer Kiln");
  rest.remove_prefix(label.size() + 1);
  result.statement.name = field("name");
  const auto version = parse_number<std::uint64_t>(field("version")),
             bytes = parse_number<std::uint64_t>(field("bytes"));
  const auto hash = parse_hash(field("blake3"));
  if (!version || !bytes || !hash || !rest.empty()) damaged("is no signature of a file");
  result.statement.version = *version;
  result.statement.bytes = *bytes;
  result.statement.hash = *hash;
  std::string_view last = std::string_view(text).substr(end + 1);
  if (last.ends_with('\n')) last.remove_suffix(1);
  const auto signer = signer_of_line(domain, statement, last);
  if (!signer) damaged("its signature is not right");
  result.signer = *signer;
  return result;
}

signed_file read_signature_of(const std::filesystem::path& file) {
  const auto place = signature_file_of(file);
  signed_file result = read_statement(read_trust_text(place), place.string());
  const file_statement& said = result.statement;
  const file_statement found = describe_file(file, said.version);
  if (found == said) return result;
  throw error(error_kind::mismatch,
              file.string() + ": is not the file that was signed: " +
                  (found.name != said.name ? "that one is called " + said.name : "its bytes are others"));
}

}  // namespace kiln
