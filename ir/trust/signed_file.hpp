// Detached signatures of whole files of any kind: models, archives, tuning records. FILE.sig is text:
//
//   kiln-signature-1
//   name resnet50.kiln       the file's name without folders, so that one file cannot stand for another
//   version 3                chosen by the signer, so that an old file cannot stand for a newer one
//   bytes 8192
//   blake3 HEX               of the whole file
//   signature HEX HEX        key, Ed25519 signature of "Kiln signed file 1\n" and the lines before
//
// Values; any thread. Throws error{missing_file, io, corrupted, untrusted, mismatch}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "ir/hash.hpp"
#include "ir/trust/keys.hpp"

namespace kiln {

struct file_statement {
  std::string name;
  std::uint64_t version = 0, bytes = 0;
  content_hash hash;
  friend bool operator==(const file_statement&, const file_statement&) = default;
};

std::filesystem::path signature_file_of(const std::filesystem::path& file);  // FILE.sig

// Returns the statement to sign about the present contents of the file.
file_statement describe_file(const std::filesystem::path& file, std::uint64_t version);
std::string signed_statement(const file_statement& statement, const signing_key& key);

struct signed_file {
  file_statement statement;
  public_key signer{};
};
// Reads the text of a signature and verifies it. `file` is for messages.
signed_file read_statement(const std::string& text, const std::string& file);
// Reads FILE.sig and compares it with the file. Throws error{mismatch} if the file is another one.
signed_file read_signature_of(const std::filesystem::path& file);

}  // namespace kiln
