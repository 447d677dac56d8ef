// SPDX-License-Identifier: BSD-3-Clause
//
// Applies the list of features (features.hpp) to a header: which features it has, which of them
// this build lacks, and the messages about that.
#include "perdure/pool/features.hpp"

namespace perdure::pool {
namespace {

constexpr FeatureWord all_words[] = {FeatureWord::read, FeatureWord::write, FeatureWord::optional};

std::string_view purpose(FeatureWord word) {
  return word == FeatureWord::read    ? "for reading"
         : word == FeatureWord::write ? "for writing"
                                      : "optional";
}

std::string number(unsigned bit) { return "bit " + std::to_string(bit); }

// The feature with that number, if it is listed for this word: the same number in another word
// means something that no list has.
const FeatureInfo* listed(FeatureWord word, unsigned bit) {
  return bit < std::size(features) && features[bit].word == word ? &features[bit] : nullptr;
}

// Appends "'catalog root' (bit 3, for reading)" for each bit of `bits`.
void name_bits(std::string& text, FeatureWord word, std::uint64_t bits) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((bits >> bit & 1) == 0) continue;
    const FeatureInfo* const f = listed(word, bit);
    text.append(text.empty() ? "" : ", ")
        .append(f != nullptr ? "'" + std::string(f->name) + "' (" : "a feature without a name (");
    text.append(number(bit)).append(", ").append(purpose(word)).append(")");
  }
}

std::string known_features() {
  std::string text;
  for (const FeatureWord word : all_words) name_bits(text, word, known_bits(word));
  return text;
}

}  // namespace

FeatureWords feature_words(const Header& header) noexcept {
  if (header.version >= feature_version)
    return {header.features_write, header.features_read, header.features_optional};
  FeatureWords words;
  if (header.version == combined_version) words.read = info(Feature::combined_records).bit();
  return words;
}

bool has_feature(const Header& header, Feature feature) noexcept {
  return (feature_words(header).of(info(feature).word) & info(feature).bit()) != 0;
}

void set_feature(Header& header, Feature feature) noexcept {
  FeatureWords words = feature_words(header);
  words.of(info(feature).word) |= info(feature).bit();
  header.version = feature_version;
  header.features_write = words.write;
  header.features_read = words.read;
  header.features_optional = words.optional;
}

void set_log_from(Header& header, std::uint64_t id) noexcept {
  header.log_from_id = has_feature(header, Feature::archived_log) ? id : 0;
}

Status check_features(const std::string& path, const Header& header, bool for_writing) {
  FeatureWords words = feature_words(header);
  const std::uint64_t read = words.read & ~known_bits(FeatureWord::read);
  const std::uint64_t write = for_writing ? words.write & ~known_bits(FeatureWord::write) : 0;
  if ((read | write) == 0) return {};
  std::string missing;
  name_bits(missing, FeatureWord::read, read);
  name_bits(missing, FeatureWord::write, write);
  const bool readable = read == 0 && header.clean == 1;
  return failure(Code::incompatible, path,
                 "a pool that needs what this build does not know: " + missing,
                 "no other features than " + known_features(),
                 std::string("open it with a newer Perdure") +
                     (readable ? ", or for reading only" : "") + "; nothing was written");
}

std::vector<std::string> feature_names(const Header& header) {
  std::vector<std::string> names;
  FeatureWords words = feature_words(header);
  for (unsigned bit = 0; bit < 64; ++bit)
    for (const FeatureWord word : all_words) {
      if ((words.of(word) >> bit & 1) == 0) continue;
      const FeatureInfo* const f = listed(word, bit);
      if (f == nullptr)
        names.push_back(number(bit) + " (unknown, " + std::string(purpose(word)) + ")");
      else
        names.push_back(
            std::string(f->name) +
            (f->implemented ? "" : " (unknown to this build, " + std::string(purpose(word)) + ")"));
    }
  return names;
}

}  // namespace perdure::pool
