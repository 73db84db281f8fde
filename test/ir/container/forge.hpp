// A container taken apart, to be changed and put together again with every hash right.
#pragma once

#include "fixtures.hpp"
#include "ir/container/format.hpp"
#include "ir/container/sections.hpp"

namespace kiln::testing {

// The sections of a program, which a test can modify and sign again, as an attacker who knows the format could.
struct forge {
  std::vector<container::packed_section> sections;
  std::vector<std::byte> weights;

  explicit forge(const std::filesystem::path& file) {
    container::open_container opened(file);
    for (const container::section_row& row : opened.header().sections) {
      if (row.kind == container::section_kind::weights) continue;
      auto raw = opened.raw(row.kind);
      sections.push_back({row.kind, container::codec::raw, raw.size(), {}, {raw.begin(), raw.end()}});
    }
    auto bytes = opened.weights();
    weights.assign(bytes.begin(), bytes.end());
  }
  std::vector<std::byte>& operator[](container::section_kind kind) {
    for (container::packed_section& s : sections)
      if (s.kind == kind) return s.stored;
    throw std::runtime_error("no such section");
  }
  void write(const std::filesystem::path& file) {
    for (container::packed_section& s : sections) {
      s.raw_bytes = s.stored.size();
      s.hash = blake3(s.stored);
    }
    container::file_header header;
    header.written_by = {0, 1, 0};
    container::write_container(file, header, sections,
                               {weights.size(), [&](container::output_file& out) { out.write(weights); }});
  }
};

}  // namespace kiln::testing
