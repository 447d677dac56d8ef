// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/source.hpp"

#include <string>
#include <string_view>

#include "perdure/api/layout.hpp"
#include "perdure/base/status.hpp"

namespace perdure::inspect {

Source read_source(Walker& walker, const pool::Header& header,
                   const pool::CatalogContents& catalog) {
  Source source;
  source.root = walker.mapped() + catalog.root_offset;
  source.unfinished = catalog.pending;
  if (!catalog.layouts.empty()) {
    source.tree = read_layout(catalog.layouts.front(), "");
    for (std::size_t i = 1; i < catalog.layouts.size(); ++i)
      source.tree.add_records(catalog.layouts[i]);
    return source;
  }
  const std::string_view text = pool::layout_text(header);
  if (layout_fingerprint(text) != header.fingerprint)
    throw error(failure(
        Code::unsupported, "",
        "the first " + std::to_string(text.size()) + " bytes of a longer layout text",
        "a text that fits into the header, " + std::to_string(sizeof header.layout) + " bytes",
        "only the program that made the pool can read its containers"));
  source.tree = read_layout(text, pool::field_names_text(header));
  return source;
}

}  // namespace perdure::inspect
