#!/bin/sh
# Writes foldoc.txt, a million tokens of plain English, here: one entry of Debian's dict-foldoc a text. Needs no root.
set -eu
apt-get download -qq dict-foldoc
dpkg -x dict-foldoc_*.deb dict-foldoc
zcat < dict-foldoc/usr/share/dictd/foldoc.dict.dz | awk '/^[^ \t]/ && !last {if (length(text) > 80) print text; text = ""}
  {gsub(/[{}]/, ""); text = text " " $0; last = length($0)} END {print text}' | tr -s ' \t' ' ' > foldoc.part
mv foldoc.part foldoc.txt
rm -r dict-foldoc dict-foldoc_*.deb
