//! The codes of the OCFL specification, and a finding that carries one.

use crate::version::Spec;
use std::fmt;

macro_rules! codes {
    ($($code:ident $text:literal,)*) => {
        /// A code from the specification's list: `E…` breaks a MUST, `W…` a SHOULD.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $text] $code,)* }

        impl Code {
            /// Every code there is, in order.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// The code as the specification writes it.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$code => stringify!($code),)* }
            }

            /// The rule behind the code, in one sentence.
            pub fn rule(self) -> &'static str {
                match self { $(Code::$code => $text,)* }
            }
        }
    };
}

codes! {
    E001 "The object root holds only what the specification names.",
    E002 "The object's declaration follows the Namaste form.",
    E003 "An object has exactly one declaration of its OCFL version.",
    E004 "The declaration's name is `0=ocfl_object_` and the version.",
    E005 "The declaration's name starts with `0=`.",
    E006 "The declaration's name goes on with `ocfl_object_` and the version.",
    E007 "The declaration contains its own value and a newline.",
    E008 "An object has at least one version.",
    E009 "Version numbers start at 1.",
    E010 "Version numbers have no gaps.",
    E011 "Padded version directories start with `v0`.",
    E012 "All version directories are padded alike.",
    E013 "New versions are named as earlier ones are.",
    E014 "Inventories use the real names of version directories.",
    E015 "A version directory holds no files but its inventory and sidecar.",
    E016 "A version with files has a content directory.",
    E017 "The content directory's name has no slash.",
    E018 "The content directory's name is not `.` or `..`.",
    E019 "A content directory that is set is set in the first version.",
    E020 "The content directory does not change between versions.",
    E021 "The content directory is `content` where nothing else is set.",
    E022 "Directories beside the content directory are ignored.",
    E023 "Every file in a content directory is in the manifest.",
    E024 "A content directory has no empty directories in it.",
    E025 "Content is addressed by sha512 or sha256.",
    E026 "Fixity algorithms are from the specification or an extension.",
    E027 "Clients know the specification's fixity algorithms.",
    E028 "Fixity algorithms that a client does not know are ignored.",
    E029 "A SHA-1 digest is written in hexadecimal.",
    E030 "A SHA-256 digest is written in hexadecimal.",
    E031 "A SHA-512 digest is written in hexadecimal.",
    E032 "A BLAKE2b-512 digest is written in hexadecimal.",
    E033 "An inventory is JSON of the specified structure.",
    E034 "An inventory is named `inventory.json`.",
    E035 "Content paths are separated by `/`.",
    E036 "An inventory has id, type, digestAlgorithm and head.",
    E037 "The id is the same in every inventory of the object, and not empty.",
    E038 "The type matches the object's declaration.",
    E039 "The digest algorithm is the one used in manifest and state.",
    E040 "The head is the latest version.",
    E041 "An inventory has a manifest and versions.",
    E042 "Content paths lie in a version's content directory.",
    E043 "An inventory has a block of versions.",
    E044 "The versions block is called `versions`, and is a JSON object.",
    E045 "The versions block is a JSON object.",
    E046 "The versions are the version directories that are there.",
    E047 "Each version is a JSON object.",
    E048 "Each version has `created` and `state`.",
    E049 "`created` is a date and time of RFC 3339, to the second, with a zone.",
    E050 "A state's digests are keys of the manifest.",
    E051 "A logical path is one or more elements joined by `/`.",
    E052 "No element of a logical path is empty, `.` or `..`.",
    E053 "A logical path does not start or end with `/`.",
    E054 "A user has a name.",
    E055 "The fixity block is called `fixity`.",
    E056 "Fixity blocks are named by digest algorithms.",
    E057 "A fixity block has the structure of a manifest.",
    E058 "Every inventory has a sidecar.",
    E059 "The sidecar is named by the inventory's digest algorithm.",
    E060 "The sidecar holds the inventory's digest.",
    E061 "A sidecar is the digest, white space and `inventory.json`.",
    E062 "The sidecar is written after the inventory.",
    E063 "An object has an inventory in its root.",
    E064 "The root inventory is the same file as the latest version's.",
    E066 "Earlier inventories describe the same states.",
    E067 "An object's extensions directory holds only directories.",
    E069 "A storage root has a declaration of its OCFL version.",
    E070 "`ocfl_layout.json` has an extension and a description.",
    E071 "The layout's extension is a registered one.",
    E072 "A storage root holds no files that are not part of an object.",
    E073 "A storage root has no empty directories.",
    E074 "Storage roots are independent of each other.",
    E075 "The root's declaration follows the Namaste form.",
    E076 "A storage root has exactly one declaration of its OCFL version.",
    E077 "The root declaration's name is `0=ocfl_` and the version.",
    E078 "The root declaration's name starts with `0=`.",
    E079 "The root declaration's name goes on with `ocfl_` and the version.",
    E080 "The root declaration contains its own value and a newline.",
    E081 "Objects conform to the root's OCFL version or an earlier one.",
    E082 "Objects are at the ends of the directory hierarchy.",
    E083 "An object's identifier maps to one place in the root.",
    E084 "Directories above objects hold no files.",
    E085 "Every branch of the directory hierarchy ends in an object.",
    E086 "A root's extensions directory keeps to the rules of an object's (OCFL 1.0 only).",
    E087 "Validators ignore files in the root that they do not know.",
    E088 "A root's directories lead to objects or are `extensions`.",
    E089 "What is not a plain file is wrapped in one.",
    E090 "There are no hard or symbolic links.",
    E092 "Content has the digest that the manifest gives.",
    E093 "Content has the digests that the fixity block gives.",
    E094 "A message is a JSON string.",
    E095 "Logical paths are unique, and none is a directory of another.",
    E096 "A digest is in the manifest once, whatever its case.",
    E097 "A digest is in a fixity block once, whatever its case.",
    E098 "A content path is one or more elements joined by `/`.",
    E099 "No element of a content path is empty, `.` or `..`.",
    E100 "A content path does not start or end with `/`.",
    E101 "Content paths are unique, and none is a directory of another.",
    E102 "An inventory has only the keys that are specified.",
    E103 "Later versions conform to the same or a later OCFL version.",
    E104 "A version directory is `v` and its number.",
    E105 "Version numbers are positive decimal integers.",
    E106 "The manifest is a JSON object.",
    E107 "Every digest in the manifest is used by some version.",
    E108 "The content directory is a child of the version directory.",
    E110 "The id does not change between versions.",
    E111 "The fixity block is a JSON object.",
    E112 "The root's extensions directory holds only directories.",
    W001 "Version directories should not be padded.",
    W002 "A version directory should hold no other directory.",
    W003 "A version without files should have no content directory.",
    W004 "Content should be addressed by sha512.",
    W005 "The id should be a URI.",
    W007 "A version should have a message and a user.",
    W008 "A user should have an address.",
    W009 "A user's address should be a URI.",
    W010 "Every version should have an inventory.",
    W011 "Earlier inventories should have the same version metadata.",
    W012 "Logs should be in the directory `logs`.",
    W013 "An object's extensions should be registered ones.",
    W014 "A root should use one layout.",
    W015 "A root should have objects at its top, or none there.",
    W016 "A root's extensions should be registered ones.",
}

impl Code {
    /// Whether it is an error; the others are warnings.
    pub fn is_error(self) -> bool {
        self.as_str().starts_with('E')
    }

    /// Where the specification says it.
    pub fn url(self) -> String {
        let spec = if self.is_of(Spec::V1_1) { Spec::V1_1 } else { Spec::V1_0 };
        format!("https://ocfl.io/{spec}/spec/#{}", self.as_str())
    }

    /// Whether a version of the specification has this code.
    pub fn is_of(self, spec: Spec) -> bool {
        match spec {
            Spec::V1_0 => !(Code::E103..=Code::E112).contains(&self) && self != Code::W016,
            Spec::V1_1 => self != Code::E086,
        }
    }

    /// The code by which a version of the specification calls the same fault; `None` where that
    /// version has no such rule.
    pub(crate) fn in_terms_of(self, spec: Spec) -> Option<Code> {
        if self.is_of(spec) {
            return Some(self);
        }
        match self {
            // The type of an earlier inventory was not asked for. It cannot be of a later version
            // than the one that the object declares, all the same.
            Code::E103 => Some(Code::E038),
            Code::E104 | Code::E105 => Some(Code::E046),
            Code::E106 => Some(Code::E041),
            Code::E108 => Some(Code::E017),
            Code::E110 => Some(Code::E037),
            Code::E111 => Some(Code::E056),
            Code::E112 => Some(Code::E086),
            Code::W016 => Some(Code::W013),
            // E107: 1.0 says what the manifest's digests are, and not that they must be.
            _ => None,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that a validation found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    /// The file it is about, relative to the object or storage root; empty for the whole.
    pub place: String,
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            write!(f, "{} {}", self.code, self.message)
        } else {
            write!(f, "{} {}: {}", self.code, self.place, self.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_of_the_specification_has_its_own_codes() {
        for code in Code::ALL {
            for spec in Spec::ALL {
                let terms = code.in_terms_of(spec);
                assert!(terms.is_none_or(|code| code.is_of(spec)), "{code} in {spec}");
            }
        }
        assert_eq!(Code::E106.in_terms_of(Spec::V1_0), Some(Code::E041));
        assert_eq!(Code::E107.in_terms_of(Spec::V1_0), None);
        assert_eq!(Code::E106.in_terms_of(Spec::V1_1), Some(Code::E106));
        assert_eq!(Code::E092.url(), "https://ocfl.io/1.1/spec/#E092");
        assert_eq!(Code::E086.url(), "https://ocfl.io/1.0/spec/#E086");
    }
}
