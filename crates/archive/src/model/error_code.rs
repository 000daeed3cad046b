//! The codes of the archive's errors and problems.

queue::error_codes! {
    /// What an error or a problem of the archive is filed under. The texts never change.
    pub enum ErrorCode {
        // Configuration.
        /// The configuration cannot be read.
        ConfigFile = "config_file", "Name another with `--config` or `ACCESSION_CONFIG`, or make it readable.";
        /// The configuration is not TOML.
        ConfigSyntax = "config_syntax", "Correct the line that the message names.";
        /// There is no setting of this name.
        ConfigKey = "config_key", "Correct the name; docs/configuration.md lists every setting.";
        /// A setting has a value that cannot be used.
        ConfigValue = "config_value", "Correct the lines that the message names.";
        /// The file of a secret cannot be read, or others may read it.
        SecretFile = "secret_file", "Put the secret there as one line that only this user can read.";
        /// A setting of a collection cannot have this value.
        ProfileValue = "profile_value", "Give one of the values that the message names.";
        /// The profile of a collection cannot be read from the database.
        ProfileUnreadable = "profile_unreadable", "Set it anew with `accession collection set`.";
        /// The BagIt profile of a collection cannot be used.
        BagProfile = "bag_profile", "Set `bag_profile` to a file that can be read.";
        /// A queue has the name of a pipeline of the archive.
        NameTaken = "name_taken", "Empty the queue and delete it, then start again.";
        /// TLS cannot be set up.
        Tls = "tls", "Read the message: the certificates of the system are missing or damaged.";
        /// Mail is to be sent, and no mail server is configured.
        MailNotConfigured = "mail_not_configured", "Add `[mail]` to the configuration, then requeue the job.";
        /// Identifiers are to come from EZID, which is not configured.
        EzidNotConfigured = "ezid_not_configured", "Add `[identifiers.ezid]`, or set `identifiers` to `mint`.";
        // Names that do not exist.
        /// There is no such collection.
        UnknownCollection = "unknown_collection", "`accession collection list` shows those there are; `accession collection create` makes one.";
        /// The batch is not a deposit.
        UnknownDeposit = "unknown_deposit", "`accession batches list` shows the deposits.";
        /// There is no such object.
        UnknownObject = "unknown_object", "`accession objects list` shows those there are.";
        /// No store of this name is configured.
        UnknownStore = "unknown_store", "Add it to the configuration, or change the stores of the collection.";
        /// Several objects have the name.
        Ambiguous = "ambiguous", "Give the identifier of the object.";
        // Deposits.
        /// The job does not say what was deposited.
        BadPayload = "bad_payload", "Deposit again.";
        /// A path cannot be used.
        BadPath = "bad_path", "Correct the path.";
        /// A URL is not UTF-8.
        BadUrl = "bad_url", "Percent-encode it.";
        /// The collection does not take deposits of this kind.
        PayloadKind = "payload_kind", "Deposit to another collection, or have its `payload_kinds` changed.";
        /// The file is not an archive of a kind that is known.
        UnknownContainer = "unknown_container", "Deposit it as a file, or pack it again.";
        /// The package is not there.
        PackageMissing = "package_missing", "Put it back and requeue the job, or deposit it again.";
        /// The package may not be read.
        PackageForbidden = "package_forbidden", "Let the worker read it, then requeue the job.";
        /// The package could not be read this time.
        PackageUnreadable = "package_unreadable", "Check the disk or the share that it is on. The job is tried again.";
        /// The package changed after the ingest began.
        PackageChanged = "package_changed", "Deposit it again when it is complete.";
        /// The archive is damaged.
        PackageDamaged = "package_damaged", "Check where the package comes from, and deposit it again.";
        /// The archive is beyond a limit of its reader.
        PackageLimit = "package_limit", "Pack it in another way, or divide it.";
        /// The path of the package leads over a symbolic link.
        PackageLink = "package_link", "Name the package by its own path.";
        /// What is there is of another kind or size than was announced.
        NotAsAnnounced = "not_as_announced", "Correct the deposit or the source, and deposit again.";
        /// The job has no package any more.
        NoPackage = "no_package", "Deposit it again.";
        /// The package has no files.
        EmptyPackage = "empty_package", "Deposit one that has files.";
        /// The package has more files than the collection takes.
        TooManyFiles = "too_many_files", "Raise `files_max` of the collection, or divide the package.";
        /// The package has more bytes than the collection takes.
        TooManyBytes = "too_many_bytes", "Raise `bytes_max` of the collection, or divide the package.";
        /// What a manifest names is more than the collection takes.
        TooLarge = "too_large", "Raise the limits of the collection, or divide the manifest.";
        /// The archive expands to far more bytes than it has.
        DecompressionBomb = "decompression_bomb", "Raise `limits.expand_ratio_max` if that is expected; else check where it comes from.";
        /// A path in the package is not accepted.
        UnsafePath = "unsafe_path", "Rename the file.";
        /// Two files of the package have the same path.
        DuplicatePath = "duplicate_path", "Remove or rename one.";
        /// A path of the package is both a file and a directory.
        PathConflict = "path_conflict", "Rename one.";
        /// A name in the package is not UTF-8, and is kept percent-encoded.
        PathNotUtf8 = "path_not_utf8", "Nothing, if the encoded name is good enough; else rename the file.";
        /// Two paths differ only in case or in the composition of letters.
        SimilarPaths = "similar_paths", "Rename one if the object is to be restored to a file system that ignores the difference.";
        /// A member of the archive is of a kind that cannot be read.
        UnsupportedMember = "unsupported_member", "Pack it in another way.";
        /// Something in the package is neither a file nor a directory.
        NotAFile = "not_a_file", "Leave it out.";
        /// A file of the package cannot be read.
        UnreadableFile = "unreadable_file", "Check the package, and deposit it again.";
        /// The package has an empty directory, which stores cannot keep.
        EmptyDirectory = "empty_directory", "Nothing: its name is recorded where the message says so.";
        /// Empty directories are new and nothing else is, so no version is made and they are not recorded.
        DirectoriesNotRecorded = "directories_not_recorded", "Nothing, or deposit them with the next change of a file.";
        /// A container of a kind that is not unpacked is kept as one file.
        ContainerKeptWhole = "container_kept_whole", "Deposit it as a .tar, .zip or directory to have its files checked and identified.";
        /// A file that is named like a container is not one, and is kept as one file.
        NotAContainer = "not_a_container", "See whether it came whole.";
        /// Data follow the end of the archive, which are kept and not read.
        ArchiveDataAfterEnd = "archive_data_after_end", "See whether several archives were joined.";
        /// Data precede the start of the archive, which are kept and not read.
        ArchiveDataBeforeStart = "archive_data_before_start", "See whether several archives were joined.";
        /// The archive ends without the mark of its end.
        ArchiveUnmarked = "archive_unmarked", "See whether it came whole.";
        /// The collection takes bags, and the package is none.
        NotABag = "not_a_bag", "Deposit a bag.";
        /// The metadata of the package cannot be used.
        Metadata = "metadata", "Correct the file that the message names.";
        /// A line of ANVL metadata cannot be read.
        MetadataAnvl = "metadata.anvl", "Correct the line.";
        /// An element is not one of Dublin Core.
        MetadataDcElement = "metadata.dc-element", "Correct the name of the element.";
        /// The Dublin Core record is not JSON of the expected form.
        MetadataDcJson = "metadata.dc-json", "Correct the file; docs/metadata.md shows the form.";
        /// The Dublin Core record is not XML that can be read.
        MetadataDcXml = "metadata.dc-xml", "Correct the file.";
        /// A metadata file is not UTF-8.
        MetadataEncoding = "metadata.encoding", "Save it as UTF-8.";
        /// A metadata file or value is too large.
        MetadataTooLarge = "metadata.too-large", "Shorten it.";
        // Digests and manifests.
        /// A digest differs from the one that was given.
        DigestMismatch = "digest_mismatch", "Send the file again: it was damaged on the way, or is another one.";
        /// A digest was given for a directory, which has none.
        DigestOfDirectory = "digest_of_directory", "Leave it out, or deposit an archive.";
        /// A digest algorithm is not known here.
        UnknownAlgorithm = "unknown_algorithm", "Use sha256 or sha512.";
        /// A file has another size than was given.
        SizeMismatch = "size_mismatch", "Correct the manifest or the file.";
        /// The object manifest of a package cannot be used.
        InnerManifest = "inner_manifest", "Correct it, and deposit again.";
        /// The object manifest lists a file that is not in the package.
        InnerMissing = "inner_missing", "Add the file, or correct the manifest.";
        /// A file has another size than its object manifest says.
        InnerSize = "inner_size", "Correct the manifest or the file, and deposit again.";
        /// A file has another digest than its object manifest says.
        InnerDigest = "inner_digest", "Send the file again, or correct the manifest.";
        /// The package has a file that its object manifest does not list.
        InnerExtra = "inner_extra", "List the file, or leave it out.";
        /// The manifest names no files.
        ManifestNamesNoFiles = "manifest_names_no_files", "Submit one that does.";
        /// The manifest has more bytes than a manifest may have.
        ManifestTooLarge = "manifest_too_large", "Divide it.";
        /// The manifest cannot be read.
        ManifestUnreadable = "manifest_unreadable", "Submit it again.";
        // Which object it is.
        /// An ARK is malformed.
        IdentifierArk = "identifier.ark", "Correct it; the message names the part.";
        /// An identifier cannot be accepted.
        IdentifierInvalid = "identifier.invalid", "Correct it; the message says why.";
        /// Identifiers cannot be minted with these settings.
        IdentifierMinter = "identifier.minter", "Correct the settings that the message names.";
        /// The collection takes only deposits that name their identifier.
        IdentifierRequired = "identifier_required", "Give an identifier.";
        /// The collection takes only deposits that name a local identifier.
        LocalIdRequired = "local_id_required", "Give a local identifier.";
        /// A local identifier cannot be accepted.
        LocalIdForbidden = "local_id_forbidden", "Correct it; the message says why.";
        /// A local identifier belongs to another object, and is not given to this one.
        LocalIdTaken = "local_id_taken", "Correct the identifier if it should be this object's.";
        /// The identifiers of a deposit contradict each other.
        ContradictoryIdentifiers = "contradictory_identifiers", "Correct the one that is wrong.";
        /// The object belongs to another collection.
        OtherCollection = "other_collection", "Deposit it there, or correct the identifier.";
        /// The deposit says that the object is new, and it exists.
        ObjectExists = "object_exists", "Deposit it with `--mode update` or `either`.";
        /// The deposit says that the object exists, and it does not.
        ObjectMissing = "object_missing", "Deposit it with `--mode new` or `either`, or correct its identifier.";
        /// Only a file name says which object this is, and files of that object would be lost.
        DerivedIdentity = "derived_identity", "Give an identifier, or say `--mode update`.";
        /// Another deposit has just reserved the identifier.
        ReservedMeanwhile = "reserved_meanwhile", "Nothing: the job is tried again.";
        /// The object has as many versions as there can be.
        VersionsFull = "versions_full", "Deposit it as a new object.";
        // Work space.
        /// The disk of the work space is full.
        NoSpace = "no_space", "Make room. The job goes on by itself.";
        /// The work space cannot be written to.
        WorkSpace = "work_space", "Check the disk and its permissions. The job is tried again.";
        /// The job needs more work space than there ever is.
        WorkSpaceTooSmall = "work_space_too_small", "Give the job another work space, or enlarge this one.";
        /// The data of the job were discarded after their retention.
        DataDiscarded = "data_discarded", "Requeue the job to its first stage.";
        /// A file was not read before it was to be stored.
        NotRead = "not_read", "Requeue the job from validating.";
        /// The data of the job are not complete.
        Incomplete = "incomplete", "Requeue the job to its first stage.";
        // External checks.
        /// An external check refused the file.
        CheckRefused = "check_refused", "Read what the check said, and deposit another file.";
        /// An external check could not be run.
        CheckFailed = "check_failed", "Correct its settings. The job is tried again.";
        /// An external check took too long.
        CheckTimeout = "check_timeout", "Raise its `timeout_seconds` if it needs longer. The job is tried again.";
        /// An external check asks to be run later.
        CheckLater = "check_later", "Nothing: the job is tried again.";
        // Downloads.
        /// The text is not a URL that can be fetched.
        UrlInvalid = "url_invalid", "Correct it.";
        /// Only http, https and file URLs are fetched.
        UrlScheme = "url_scheme", "Put the file where one of them reaches it.";
        /// The URL has a user name or password in it.
        UrlCredentials = "url_credentials", "Use a URL without; it would be kept in records.";
        /// There is nothing at the URL.
        UrlNotFound = "url_not_found", "Correct the URL or put the file there, then deposit again.";
        /// The URL of a manifest or deposit cannot be fetched.
        UrlNotThere = "url_not_there", "Correct the URL, or put the file there.";
        /// The server of a URL did not answer during a check.
        UrlUnreachable = "url_unreachable", "Check again later.";
        /// The URL may not be read.
        UrlForbidden = "url_forbidden", "Make it readable for the archive.";
        /// The server refused the request.
        UrlRefused = "url_refused", "Check the URL with the operators of its server.";
        /// A redirect is not followed.
        UrlRedirects = "url_redirects", "Use the URL of the file itself.";
        /// The URL leads into a private network.
        UrlPrivateAddress = "url_private_address", "Add its host to `fetch.allow_private` if it should be fetched.";
        /// A symbolic link lies on the way to the file.
        UrlLink = "url_link", "Name the file by its own path.";
        /// The URL does not name a regular file.
        UrlNotAFile = "url_not_a_file", "Name a file, or deposit the directory.";
        /// The file is not below a directory that file: URLs may name.
        FileOutsideRoots = "file_outside_roots", "Have the directory added to `fetch.file_roots`, or deposit the file itself.";
        /// A local file could not be read this time.
        FileUnreadable = "file_unreadable", "Check the disk. The job is tried again.";
        /// The file is larger than any that is downloaded.
        FileTooLarge = "file_too_large", "Raise `fetch.bytes_max`, or divide the file.";
        /// The server sends the file encoded although it was asked for as it is.
        ContentEncoded = "content_encoded", "Have the server send it without Content-Encoding.";
        /// The server did not answer in time.
        HostTimeout = "host_timeout", "Nothing: the job is tried again.";
        /// The server asks to be tried later.
        HostBusy = "host_busy", "Nothing: the job is tried again.";
        /// The server failed.
        HostFailed = "host_failed", "Nothing: the job is tried again. Tell the operators of the server if it lasts.";
        /// The server cannot be reached.
        HostUnreachable = "host_unreachable", "Check its name and the network. The job is tried again.";
        /// The server sends more slowly than `fetch.bytes_per_second_min`.
        HostSlow = "host_slow", "Nothing: the download goes on later with what came.";
        /// The connection broke off.
        ConnectionLost = "connection_lost", "Nothing: the download goes on with what came.";
        /// The answer of the server makes no sense.
        BadAnswer = "bad_answer", "Tell the operators of the server if it lasts. The job is tried again.";
        /// Another process is downloading the same file.
        DownloadBusy = "download_busy", "Wait for it, or stop it.";
        // Stores.
        /// The store did not answer.
        StoreUnavailable = "store_unavailable", "Check the store and the network. The job is tried again.";
        /// The store is down.
        StoreDown = "store_down", "Bring it back. Jobs that need it wait, and lose no attempt.";
        /// The store asks for fewer requests.
        StoreThrottled = "store_throttled", "Nothing: jobs that need it wait, and lose no attempt.";
        /// The store does not permit the request.
        StoreDenied = "store_denied", "Correct the credentials or permissions.";
        /// The store has no space.
        StoreFull = "store_full", "Make room.";
        /// The store refused the request.
        StoreRefused = "store_refused", "Read the message, and correct the settings of the store.";
        /// Another writer changed the same object of the store.
        StoreConflict = "store_conflict", "Nothing: the job is tried again.";
        /// The store does not return the bytes that were put.
        StoreCorrupt = "store_corrupt", "Check the store, then requeue the job to storing.";
        /// A file in the store is damaged, and the deposit does not hold its bytes.
        StoreDamaged = "store_damaged", "Restore the file from another store or a backup.";
        /// Files that were stored are missing; they are stored again.
        StoreLostFiles = "store_lost_files", "Check the store if it happens again.";
        /// The store and the registry know different versions of the object.
        StoreOutOfStep = "store_out_of_step", "Run `accession check` on the object, and see what is missing.";
        /// The only copies of objects are in a store that is not configured.
        StoreNotConfigured = "store_not_configured", "Add the store to the configuration.";
        /// A store of cold storage returns neither its files nor their digests at once.
        ColdStoreUnverifiable = "cold_store_unverifiable", "Make it a later store of the collection, or choose a class that can be read.";
        /// An object in the store cannot be read.
        ObjectUnreadable = "object_unreadable", "Run `accession ocfl validate` on it.";
        /// A look into the store ended early.
        LookEnded = "look_ended", "Nothing: the job is tried again.";
        // Registry.
        /// The store has objects and the registry has none.
        RegistryEmpty = "registry_empty", "Rebuild the registry with `accession registry rebuild`, or name an empty store.";
        /// The record of a version in the store cannot be used.
        BadRecord = "bad_record", "Restore it from another store; the object is listed and passed over.";
        /// A version in the store was not written by this program.
        NoRecord = "no_record", "Nothing: it is listed and passed over.";
        /// The record of a version could not be read this time.
        RecordUnreadable = "record_unreadable", "Check the store, and run the command again.";
        /// The registry has the version with other files.
        DifferentContent = "different_content", "Compare the two as the message says.";
        /// An event in the registry cannot be read.
        BadEvent = "bad_event", "Report it as a bug.";
        /// A message in the outbox cannot be read.
        BadMessage = "bad_message", "Report it as a bug.";
        /// A PREMIS record cannot be read.
        PremisXml = "premis.xml", "Correct the record; the message names the place.";
        // Mail, callbacks, EZID.
        /// An address of mail is malformed.
        MailAddress = "mail.address", "Correct it in the collection or the configuration.";
        /// The id of a mail cannot be used.
        MailId = "mail.id", "Report it as a bug.";
        /// A mail cannot be written.
        MailMessage = "mail.message", "Correct the address that the message names.";
        /// The mail settings are wrong.
        MailSettings = "mail.settings", "Correct `[mail]` in the configuration.";
        /// The mail server did not accept the login.
        MailLogin = "mail.login", "Correct the user and password of `[mail]`.";
        /// The mail server refused the mail for good.
        MailRefused = "mail.refused", "Correct the address, or ask the operators of the server.";
        /// The mail server is busy.
        MailBusy = "mail.busy", "Nothing: the mail is tried again.";
        /// The mail server asks for a later try.
        MailLater = "mail.later", "Nothing: the mail is tried again.";
        /// The mail server did not answer in time.
        MailTimeout = "mail.timeout", "Check the server. The mail is tried again.";
        /// The mail server cannot be reached.
        MailUnreachable = "mail.unreachable", "Check `mail.host` and the network. The mail is tried again.";
        /// The URL of a callback cannot be used.
        CallbackUrl = "callback.url", "Correct the callback URL of the collection.";
        /// A collection has a callback URL and no secret to sign with.
        CallbackSecret = "callback.secret", "Set the secret of the collection's callback.";
        /// The id of a callback cannot be used.
        CallbackId = "callback.id", "Report it as a bug.";
        /// The callback is too large.
        CallbackTooLarge = "callback.too-large", "Report it as a bug.";
        /// The receiver refused the callback.
        CallbackRefused = "callback.refused", "Have its operators look, or correct the URL and secret, then retry.";
        /// The callback URL leads into a private network.
        CallbackRefusedAddress = "callback.refused-address", "Set `callback.allow_private` if it should be called.";
        /// The receiver redirects the callback.
        CallbackRedirected = "callback.redirected", "Set the callback URL to where it goes.";
        /// The receiver says that it is gone.
        CallbackGone = "callback.gone", "Remove the callback URL of the collection.";
        /// The receiver failed.
        CallbackUnavailable = "callback.unavailable", "Nothing: the callback is tried again.";
        /// The receiver cannot be reached.
        CallbackUnreachable = "callback.unreachable", "Check the URL and the network. The callback is tried again.";
        /// The address of EZID cannot be used.
        EzidAddress = "ezid.address", "Correct the setting.";
        /// EZID has the identifier already, from elsewhere.
        EzidTaken = "ezid.taken", "Requeue the job; it proposes another name.";
        /// EZID did not accept the login.
        EzidUnauthorized = "ezid.unauthorized", "Correct the user and password of EZID.";
        /// EZID does not permit the shoulder.
        EzidForbidden = "ezid.forbidden", "Have EZID allow it, or change the shoulder.";
        /// EZID refused the identifier.
        EzidRefused = "ezid.refused", "Check the shoulder and the metadata of the deposit.";
        /// EZID gave an answer that makes no sense.
        EzidAnswer = "ezid.answer", "Check that its address is right.";
        /// EZID failed.
        EzidUnavailable = "ezid.unavailable", "Nothing: the job is tried again.";
        /// EZID cannot be reached.
        EzidUnreachable = "ezid.unreachable", "Check the network. The job is tried again.";
        // Watched places.
        /// A name in a watched place cannot be used.
        WatchName = "watch_name", "Rename it.";
        /// Another process took the package.
        WatchTaken = "watch_taken", "Nothing: it was deposited once.";
        /// The watched place has too many files.
        WatchTooMany = "watch_too_many", "Move some away, or raise `files_max`.";
        /// The watched place cannot be read.
        WatchUnreadable = "watch_unreadable", "Make it readable for the archive.";
        /// The watched place cannot be written to.
        WatchUnwritable = "watch_unwritable", "Make it writable, or turn `results` off.";
        // Of all commands and stages.
        /// The deposit has problems, which are listed.
        Invalid = "invalid", "Correct them, and deposit again.";
        /// A file could not be written or read.
        Io = "io", "Check the path and the disk.";
        /// The run was told to stop.
        Stopped = "stopped", "Nothing: it goes on when a worker runs again.";
        // Restores.
        /// The object has no version of this number.
        UnknownVersion = "unknown_version", "`accession objects versions` lists those it has.";
        /// No store is recorded to have the object.
        NoCopy = "no_copy", "`accession registry rebuild` takes in what a store has.";
        /// The object is reserved for a deposit that is not recorded yet.
        ObjectReserved = "object_reserved", "Wait until the deposit is recorded.";
        /// The object was deleted.
        ObjectDeleted = "object_deleted", "`accession objects events` says when and by whom.";
        /// No copy has the file with the bytes that the registry knows.
        NoIntactCopy = "no_intact_copy", "`accession check --content` says what is damaged. The rest can be restored.";
        /// What is asked for is frozen in cold storage.
        ContentFrozen = "content_frozen", "Restore it with `accession restore`, which has it thawed.";
        /// A store gave different bytes for a file when it was read twice.
        UnsteadyStore = "unsteady_store", "Check the disk or the network of the store. The job is tried again.";
        /// Copies were found to be bad again and again while a package was written.
        UnsteadyStores = "unsteady_stores", "`accession check --content` says what is damaged.";
        /// The restore has problems, which the message lists.
        RestoreRefused = "restore_refused", "Correct what the message lists, and restore again.";
        /// The same object would be delivered twice to one place.
        RestoredTwice = "restored_twice", "Name it once.";
        /// The collection has no objects.
        EmptyCollection = "empty_collection", "`accession collection list` shows the collections.";
        /// The version has no file that the path or the glob matches.
        NoFileMatches = "no_file_matches", "`accession objects files` lists the files of the object.";
        /// The destination cannot be understood.
        BadDestination = "bad_destination", "Name a directory, a file or s3://bucket/prefix.";
        /// Where to deliver is not said.
        NoDestination = "no_destination", "Add `--to`, or set `restore_to` of the collection.";
        /// The destination lies in a store of the archive.
        DestinationInStore = "destination_in_store", "Name another place with `--to`.";
        /// A directory cannot be delivered to a bucket, where it would not appear as a whole.
        NoDirectoryInBucket = "no_directory_in_bucket", "Restore as tar, tar.gz or zip.";
        /// The destination exists.
        DestinationExists = "destination_exists", "Name another place with `--to`, or move what is there away and requeue the job.";
        /// The destination has no room left.
        DestinationFull = "destination_full", "Make room. The restore goes on where it stopped.";
        /// The destination may not be written.
        DestinationDenied = "destination_denied", "Name another place with `--to`, or change its permissions and requeue the job.";
        /// The file system of the destination does not take the name of a file.
        DestinationRefusesName = "destination_refuses_name", "Restore as tar.";
        /// The destination could not be written this time.
        DestinationUnwritable = "destination_unwritable", "Remove the cause that the message names. The restore goes on where it stopped.";
        /// The destination does not answer.
        DestinationDown = "destination_down", "Nothing: the job waits until it is back.";
        /// What was delivered is not what was sent when it is read again.
        DeliveryDiffers = "delivery_differs", "Check the disk or the bucket of the destination.";
        /// A package that was being delivered could not be read to its end.
        ReadingEnded = "reading_ended", "Nothing: the job is tried again.";
        /// A delivered package whose time is over cannot be removed.
        RestoredStays = "restored_stays", "Remove it by hand.";
        /// An OCFL object is restored as a whole.
        OcflIsWhole = "ocfl_is_whole", "Leave out `--version` and `--path`, or restore another form.";
        /// Metadata are added to bags only.
        MetadataNeedsBag = "metadata_needs_bag", "Add `--as bag`, or leave `--metadata` out.";
        /// A restore drill did not go through.
        DrillFailed = "drill_failed", "Read the message, repair what it names, and restore the object.";
        /// A store refuses to thaw.
        ThawRefused = "thaw_refused", "Have the store permit it, then requeue the job.";
    }
}
